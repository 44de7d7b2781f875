"""Operations that a hand-written kernel pair computes as well: `impl` chooses who does.

"numpy" is the definition, run by NumPy. "triton" launches the kernels of `fgrad.triton_kernels`: interpreted on NumPy
arrays, which is slow and for checking alone, or compiled on a GPU. Both can be differentiated, batched and traced; what
the gradient kernel gives no gradient of (an index, a seed, class weights) has none by "triton", and raises. None, the
default, is "numpy" but where `jit` records for a device and kernels move fewer bytes than those generated from the
definition: attention and entries by index.
"""

from fgrad.kernels.attending import attention
from fgrad.kernels.elementwise import dropout, geglu, geglu_tanh, gelu, gelu_tanh, rope, silu, swiglu
from fgrad.kernels.indexing import embedding, gather, scatter_add, transpose
from fgrad.kernels.losses import cross_entropy, linear_cross_entropy
from fgrad.kernels.products import linear, matmul
from fgrad.kernels.reductions import argmax, cumsum, logsumexp, max, mean, sum
from fgrad.kernels.rows import group_norm, layer_norm, log_softmax, rms_norm, softmax
from fgrad.kernels.steps import adamw_step, clip_by_norm, sgd_step

__all__ = [
    "adamw_step",
    "argmax",
    "attention",
    "clip_by_norm",
    "cross_entropy",
    "cumsum",
    "dropout",
    "embedding",
    "gather",
    "geglu",
    "geglu_tanh",
    "gelu",
    "gelu_tanh",
    "group_norm",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "mean",
    "rms_norm",
    "rope",
    "scatter_add",
    "sgd_step",
    "silu",
    "softmax",
    "sum",
    "swiglu",
    "transpose",
]
