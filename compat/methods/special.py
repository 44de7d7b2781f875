"""Special functions: methods such as `igamma`, and the namespace `torch.special`.

They are those of fgrad's counterpart of scipy.special, loaded when one is first called; values need SciPy.
"""

from __future__ import annotations

import types

import numpy as np

from fgrad import extend
from fgrad.extend import TABLE as P

from .table import FUNCTIONS, composed, define


def named(name, torch_name=None, promote="float"):
    """Return the function of tensors that a function of scipy.special's name gives."""
    node = "".join(word.capitalize() for word in (torch_name or "special_" + name).split("_")) + "Backward0"
    return composed(lambda *args: getattr(extend.special, name)(*args), node, promote)


define("i0", named("i0", "i0"), inplace=True)
define("igamma", named("gammainc", "igamma"), inplace=True)
define("igammac", named("gammaincc", "igammac"), inplace=True)


def polygamma(n, input):
    return extend.special.polygamma(n, input)


_polygamma = composed(polygamma, "PolygammaBackward0")
define("polygamma", lambda n, input: _polygamma(n, input), method=False)
define("polygamma", lambda input, n: _polygamma(n, input), function=False, inplace=True)

_NAMES = {
    "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "i1", "modified_bessel_k0": "k0", "modified_bessel_k1": "k1",
}  # fmt: skip
_SAME = "entr erfcx gammainc gammaincc i0 i0e i1 i1e log_ndtr ndtr ndtri xlog1py zeta".split()
_OURS = {"expit": "sigmoid", "psi": "digamma", "gammaln": "lgamma", "multigammaln": "mvlgamma"} | {
    name: name
    for name in (
        "erf erfc erfinv exp2 expm1 log1p logit logsumexp log_softmax softmax round sinc xlogy digamma polygamma"
    ).split()
}
SPECIAL = types.SimpleNamespace(
    **{name: FUNCTIONS[known] for name, known in _OURS.items()},
    **{name: named(name) for name in _SAME},
    **{name: named(known, "special_" + name) for name, known in _NAMES.items()},
)

# ----------------------------------------------------------------------------------------------- of several operands

define("gcd", composed(lambda input, other: P["gcd"](input, other), "GcdBackward0", "arithmetic"), inplace=True)
define("lcm", composed(lambda input, other: P["lcm"](input, other), "LcmBackward0", "arithmetic"), inplace=True)


define("ldexp", lambda input, other: FUNCTIONS["mul"](input, FUNCTIONS["pow"](2.0, other)), inplace=True)
define("isposinf", composed(lambda input: np.isposinf(input), "IsposinfBackward0"))
define("isneginf", composed(lambda input: np.isneginf(input), "IsneginfBackward0"))
define("matrix_exp", composed(lambda input: P["expm"](input), "LinalgMatrixExpBackward0"))
