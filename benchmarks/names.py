"""The names `m` that workloads are written in: NumPy's, and a few of networks, from the library or composed here."""

from types import SimpleNamespace

NUMPYS = "sin cos exp tanh log sqrt sum mean".split()


def names(module, **own):
    """Return NumPy's names from `module`, with `own` beside or in place of them."""
    return SimpleNamespace(**{**{name: getattr(module, name) for name in NUMPYS if hasattr(module, name)}, **own})


def loop(step, state, xs):
    """Return the state after all steps: a scan as a loop of Python."""
    for k in range(len(xs)):
        state = step(state, xs[k])
    return state


def attention_with(softmax):
    """Return scaled dot-product attention of (…, sequence, width)."""

    def attention(q, k, v):
        return softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v

    return attention


def layer_norm_in(np):
    """Return layer norm over the last axis, composed."""

    def layer_norm(x, scale, shift):
        centred = x - np.mean(x, axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * scale + shift

    return layer_norm


def composed(np):
    """Return the names for a module that has NumPy's functions and no more."""

    def softplus(x):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def shifted(x):
        return x - np.max(x, axis=-1, keepdims=True)

    def softmax(x):
        e = np.exp(shifted(x))
        return e / np.sum(e, axis=-1, keepdims=True)

    def cross_entropy(logits, labels):
        z = shifted(logits)
        mask = (labels[..., None] == np.arange(logits.shape[-1])).astype(logits.dtype)
        return np.mean(np.log(np.sum(np.exp(z), axis=-1)) - np.sum(z * mask, axis=-1))

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    return names(
        np,
        relu=lambda x: np.maximum(x, 0),
        softplus=softplus,
        softmax=softmax,
        cross_entropy=cross_entropy,
        gelu=gelu,
        layer_norm=layer_norm_in(np),
        attention=attention_with(softmax),
        scan=loop,
    )
