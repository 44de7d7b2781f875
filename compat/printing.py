"""How tensors print: torch's layout, precision and suffixes."""

from __future__ import annotations

import math

import numpy as np

from fgrad.extend import Tracer

from . import devices, dtypes, graph
from .tensor import LEAF, Tensor


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


options = _Options()


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors print; `profile` is "default", "short" or "full", and the rest override it."""
    profiles = {
        "default": (4, 1000, 3, 80),
        "short": (2, 1000, 2, 80),
        "full": (4, math.inf, 3, 80),
    }
    if profile is not None:
        options.precision, options.threshold, options.edgeitems, options.linewidth = profiles[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


class Formatter:
    """Formats the elements of one array: all in the same style and width."""

    def __init__(self, values):
        self.floating = values.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        flat = values.reshape(-1)
        if not self.floating:
            self.width = max([self.width, *[len(str(v)) for v in flat.tolist()]])
            return
        shown = flat[np.isfinite(flat) & (flat != 0)].astype(float)
        if shown.size:
            self._choose_style(shown, np.abs(shown))
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max([self.width, *[len(self._text(v)) for v in shown.tolist()]])

    def _choose_style(self, values, sizes):
        low, high = sizes.min(), sizes.max()
        self.whole = bool((values == np.ceil(values)).all())
        self.scientific = high / low > 1000.0 or high > 1.0e8 or not self.whole and low < 1.0e-4

    def _text(self, v):
        if not self.floating:
            return str(v)
        if not math.isfinite(v):
            return str(v)
        if self.scientific:
            return f"{v:.{options.precision}e}"
        return f"{v:.0f}." if self.whole else f"{v:.{options.precision}f}"

    def __call__(self, v):
        return self._text(v).rjust(self.width)


class ComplexFormatter:
    """Formats complex elements: real and imaginary parts each in their own style."""

    def __init__(self, values):
        self.real = Formatter(values.real)
        self.imag = Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v):
        imag = self.imag(v.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{self.real(v.real)}{sign}{imag}j"


def _summarized(data):
    """Return the corner elements that a long tensor shows, to choose their style by."""
    if not data.ndim:
        return data
    n = options.edgeitems
    if data.shape[0] > 2 * n:
        rows = [*data[:n], *data[-n:]]
    else:
        rows = list(data)
    return np.stack([_summarized(row) for row in rows]) if rows else data


def _vector(data, indent, format, summarize):
    per_line = max(1, (options.linewidth - indent) // (format.width + 2))
    values = data.tolist()
    n = options.edgeitems
    if summarize and len(values) > 2 * n:
        items = [format(v) for v in values[:n]] + [" ..."] + [format(v) for v in values[-n:]]
    else:
        items = [format(v) for v in values]
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(data, indent, format, summarize):
    if data.ndim == 0:
        return format(data.item())
    if data.ndim == 1:
        return _vector(data, indent, format, summarize)
    n = options.edgeitems
    if summarize and data.shape[0] > 2 * n:
        rows = [_nested(data[i], indent + 1, format, summarize) for i in range(n)]
        rows += ["..."]
        rows += [_nested(data[i], indent + 1, format, summarize) for i in range(data.shape[0] - n, data.shape[0])]
    else:
        rows = [_nested(row, indent + 1, format, summarize) for row in data]
    return "[" + ("," + "\n" * (data.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _suffixes(t):
    """Return what stands behind the values: size, dtype, grad_fn, requires_grad."""
    found = [f"device='{t.device}'"] if t.is_cuda else []
    data = t._data
    usual = (dtypes.default.real, dtypes.default.complex, dtypes.INT64, dtypes.BOOL)
    if data.size == 0:
        if data.ndim != 1:
            found.append(f"size={tuple(data.shape)}")
        if data.dtype != dtypes.default.real:
            found.append(f"dtype={t.dtype!r}")
    elif data.dtype not in usual:
        found.append(f"dtype={t.dtype!r}")
    node = graph.grad_fn(t)
    if node is not None:
        found.append(f"grad_fn=<{node.name()}>")
    elif t._node is LEAF or t._node is not None:
        found.append("requires_grad=True")
    return found


def text(t, prefix="tensor("):
    """Return how a tensor prints."""
    data = t._data
    if isinstance(data, Tracer):
        return f"{prefix}{data!r})"
    data = devices.on_host(data)
    if data.dtype.kind == "V":
        data = data.astype(np.float32)
    indent = len(prefix)
    if data.size == 0:
        body = "[]"
    else:
        summarize = data.size > options.threshold
        shown = _summarized(data) if summarize else data
        format = ComplexFormatter(shown) if data.dtype.kind == "c" else Formatter(shown)
        body = _nested(data, indent, format, summarize)
    return _joined(prefix + body, _suffixes(t), indent)


def _joined(out, suffixes, indent):
    """Return the text with its suffixes, on a new line where the last one is full."""
    width = len(out) - out.rfind("\n") + 1
    for suffix in suffixes:
        if width + len(suffix) + 2 > options.linewidth:
            out += ",\n" + " " * indent + suffix
            width = indent + len(suffix)
        else:
            out += ", " + suffix
            width += len(suffix) + 2
    return out + ")"


def _repr(self):
    kind = type(self)
    if kind is not Tensor and kind.__name__ == "Parameter":
        return "Parameter containing:\n" + text(self)
    return text(self)


Tensor.__repr__ = _repr
Tensor.__str__ = _repr
