"""What a tensor has to do with gradients: flags, `.grad`, `.data`, `backward`, detaching, hooks."""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict

import numpy as np

from .. import devices, graph, hooks, views
from ..backward import backward as run_backward
from ..modes import mode
from ..tape import cut, place_of
from ..tensor import INFERENCE, LEAF, Tensor, wrap
from .table import define

# -------------------------------------------------------------------------------------------------- flags


def _set_requires_grad(self, flag):
    if not flag:
        if place_of(self) is not None and self._node is not LEAF:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                "in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        self._node = None
        return
    if self._data.dtype.kind not in "fcV":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if self._counter is INFERENCE and not mode.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if place_of(self) is None:
        self._node = LEAF


def _refused(name):
    def delete(self):
        raise RuntimeError(f"cannot delete {name} of a tensor")

    return delete


def requires_grad_(self, requires_grad=True):
    """Set whether gradients are wanted, and return the tensor; RuntimeError on integers, or if history forbids it."""
    if requires_grad and self._data.dtype.kind not in "fcV":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    _set_requires_grad(self, requires_grad)
    return self


Tensor.requires_grad = property(views.requires_grad, _set_requires_grad, _refused("requires_grad"))
Tensor.requires_grad_ = requires_grad_
Tensor.is_leaf = property(lambda self: (p := place_of(self)) is None or isinstance(p, Tensor))
Tensor.grad_fn = property(graph.grad_fn)
Tensor._grad_fn = property(graph.grad_fn, None, _refused("_grad_fn"))
Tensor.output_nr = property(lambda self: graph.edge(place_of(self))[1])
Tensor._base = property(lambda self: self._view.base if self._view is not None else None)
Tensor._is_view = lambda self: self._view is not None
define("is_inference", lambda input: input._counter is INFERENCE, out=False)


def _volatile(self):
    warnings.warn(
        "volatile was removed (Variable.volatile is always False), please use with torch.no_grad() instead.",
        stacklevel=2,
    )
    return False


def _set_volatile(self, value):
    warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)


Tensor.volatile = property(_volatile, _set_volatile)


# ---------------------------------------------------------------------------------------------- gradient and data


def _grad(self):
    extras = self._extras
    if extras is None:
        found = None
    else:
        found = extras.grad
    if found is None and self._node is not None and self._node is not LEAF and not _retains(self):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
            "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
            "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make "
            "sure "
            "you access the leaf Tensor instead.",
            stacklevel=2,
        )
    return found


def _retains(self):
    return self._extras is not None and self._extras.retains


def _set_grad(self, g):
    if g is not None:
        if not isinstance(g, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}")
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if g._data.dtype != self._data.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{g.dtype}' to a tensor with dtype '{self.dtype}'. "
                "Please ensure "
                "that the gradient and the tensor have the same dtype"
            )
        _check_place(self, g)
        if g._data.shape != self._data.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(g.shape)}' to a tensor of size '{list(self.shape)}'. "
                "Please ensure that the gradient and the tensor are the same size"
            )
    self.extras.grad = g


def _check_place(self, g):
    """Raise torch's error unless a gradient lies where its tensor does."""
    here, there = self.device, g.device
    if here == there:
        return
    if here.type != there.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{there.type}' to a tensor with device type "
            f"'{here.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    raise RuntimeError(
        f"attempting to assign a gradient located on device with index '{there.index}' to a tensor located on device "
        f"with index '{here.index}'. Please ensure that the gradient and the tensor are on the same device"
    )


Tensor.grad = property(_grad, _set_grad, lambda self: _set_grad(self, None))


def _get_data(self):
    made = wrap(cut(self._data))
    if self._counter is INFERENCE:
        made._counter = INFERENCE
    return made


def _set_data(self, value):
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (value._data.dtype.kind in "fcV") != (self._data.dtype.kind in "fcV") and self._node is not None:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    counter = self.counter
    if self._node is not None and self._node is not LEAF and self.device != value.device:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    self._data = value._data
    self._counter = counter


Tensor.data = property(_get_data, _set_data, _refused("data"))


define("detach_", views.detach_, out=False)


# -------------------------------------------------------------------------------------------------- backward, hooks


def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Compute the gradient of this tensor with respect to the leaves of its graph, into their `.grad`.

    Args:
        gradient: the gradient to start from, of this tensor's shape; None for one element.
        retain_graph: keep what nodes saved; by default as `create_graph`.
        create_graph: record the pass, so that gradients can be differentiated.
        inputs: the tensors that alone accumulate a gradient.

    Raises:
        RuntimeError: as `torch.autograd.backward`.

    Example:
        >>> import fgrad.compat as torch
        >>> x = torch.tensor(3., requires_grad=True)
        >>> (x ** 2).backward()
        >>> x.grad
        tensor(6.)
    """
    run_backward((self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs=inputs)


Tensor.backward = backward


def register_hook(self, hook):
    """Call `hook(grad)` whenever this tensor's gradient is computed; what it returns is used in its place.

    Example:
        >>> import fgrad.compat as torch
        >>> v = torch.tensor([0., 0., 0.], requires_grad=True)
        >>> handle = v.register_hook(lambda grad: grad * 2)
        >>> v.backward(torch.tensor([1., 2., 3.]))
        >>> v.grad
        tensor([2., 4., 6.])
        >>> handle.remove()
    """
    place = place_of(self)
    if place is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return hooks.add(hooks.hooks_of(self, place), hook)


def register_post_accumulate_grad_hook(self, hook):
    """Call `hook(tensor)` after a gradient has been added to this leaf's `.grad`."""
    place = place_of(self)
    if place is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not isinstance(place, Tensor):
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extras = self.extras
    if extras.post_hooks is None:
        extras.post_hooks = OrderedDict()
        hooks.post_hooked.add(self)
    return hooks.add(extras.post_hooks, hook)


def retain_grad(self):
    """Keep the gradient of this tensor in `.grad` although it is no leaf; RuntimeError if it requires none."""
    place = place_of(self)
    if place is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    hooks.retain(self, place)


Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
Tensor.retain_grad = retain_grad
Tensor.retains_grad = property(lambda self: _retains(self) and not self.is_leaf)


def _backward_hooks(self):
    place = place_of(self)
    if place is None:
        return None
    found = place.extras.hooks if isinstance(place, Tensor) else (place._more and place._more.tensor)
    return found or None


Tensor._backward_hooks = property(_backward_hooks, lambda self, value: None, _refused("_backward_hooks"))


# -------------------------------------------------------------------------------------------------- NumPy and Python


def numpy(self, *, force=False):
    """Return the array behind the tensor, sharing its memory; RuntimeError if it requires grad (outside no_grad)."""
    if not force and views.mode.enabled and views.requires_grad(self):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._data.__class__ is not np.ndarray and self.is_cuda:
        if force:
            return devices.on_host(self._data)
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return self._data


Tensor.numpy = numpy


def _shared(self):
    """Return the array behind the tensor, wherever it is; RuntimeError if the tensor requires grad."""
    return self._data if self.is_cuda and not views.requires_grad(self) else numpy(self)


def _cuda_array_interface(self):
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if views.requires_grad(self):
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    return self._data.__cuda_array_interface__


Tensor.__cuda_array_interface__ = property(_cuda_array_interface)


def __array__(self, dtype=None, copy=None):
    data = numpy(self)
    return np.array(data, dtype=dtype, copy=copy)


Tensor.__array__ = __array__
Tensor.__array_priority__ = 1000
Tensor.__dlpack__ = lambda self, **options: _shared(self).__dlpack__(**options)
Tensor.__dlpack_device__ = lambda self: self._data.__dlpack_device__()


def deepcopy(self, memo):
    if place_of(self) is not None and self._node is not LEAF:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage."
        )
    if id(self) in memo:
        return memo[id(self)]
    made = type(self).__new__(type(self))
    made._data = self._data.copy()
    made._node = self._node
    memo[id(self)] = made
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if self._extras is not None and self._extras.grad is not None:
        made.extras.grad = deepcopy(self._extras.grad, memo)
    return made


def _restore(cls, data, requires_grad, attributes, post_hooks, place=None):
    made = cls.__new__(cls)
    made._data = data if place is None else devices.moved(data, place)
    made._node = LEAF if requires_grad else None
    made.__dict__.update(attributes)
    return made


def reduce_ex(self, protocol):
    """Pickle a tensor by its values and its requires_grad; RuntimeError for one with history."""
    if place_of(self) is not None and self._node is not LEAF:
        warnings.warn("pickling a tensor with history keeps its values alone", stacklevel=2)
    return _restore, (
        type(self),
        np.ascontiguousarray(devices.on_host(self._data)).reshape(self._data.shape),
        views.requires_grad(self),
        dict(self.__dict__),
        None,
        devices.place_of(self._data),
    )


Tensor.__deepcopy__ = deepcopy
Tensor.__reduce_ex__ = reduce_ex
Tensor.__copy__ = lambda self: _restore(type(self), self._data, self.requires_grad, dict(self.__dict__), None)
