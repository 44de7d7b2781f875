"""`torch.nn.Parameter`: a tensor that is meant to be trained."""

from __future__ import annotations

import numpy as np

from ..tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor on the memory of `data`, which requires grad unless said otherwise."""

    __slots__ = ()

    def __new__(cls, data=None, requires_grad=True):
        self = super().__new__(cls, np.zeros((0,)) if data is None else data.detach())
        return self.requires_grad_(requires_grad)
