"""The names that docs/torch-parity.md answers for are those of torch."""

import importlib

import pytest

from tests.compat.torch_names import NAMES
from tests.parity.both import real_torch

pytestmark = pytest.mark.parity

CTX = "_ContextMethodMixin"


def names_of(namespace):
    """Return the public names of a namespace of torch."""
    torch = real_torch()
    if namespace == "torch.Tensor":
        return set(dir(torch.Tensor))
    if namespace in ("ctx", "torch.autograd.Function"):
        return set(dir(torch.autograd.Function))
    module = importlib.import_module(namespace)
    return set(getattr(module, "__all__", None) or dir(module))


@pytest.mark.parametrize("namespace", NAMES)
def test_names(namespace):
    theirs = {name for name in names_of(namespace) if not name.startswith("_")}
    ours = set(NAMES[namespace].split())
    if namespace in ("ctx", "torch.autograd.Function"):  # torch has both in one class
        ours |= set(NAMES["ctx"].split()) | set(NAMES["torch.autograd.Function"].split())
    assert ours == theirs
