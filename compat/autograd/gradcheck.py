"""`torch.autograd.gradcheck`: a function that is also the module that holds it."""

import sys
import types

from ..gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class _CallableModule(types.ModuleType):
    """A module that is called as its function of the same name."""

    def __call__(self, *args, **kwargs):
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
