"""Sparse COO tensors: made, taken apart, made dense, differentiated, checked by gradcheck; the rest is refused."""

import pytest

import fgrad.compat as torch

INDICES = [[0, 1, 1], [2, 0, 2]]


def values(**options):
    return torch.tensor([3.0, 4.0, 5.0], dtype=torch.double, **options)


def matrix(**options):
    return torch.sparse_coo_tensor(INDICES, values(), (2, 3), **options)


def test_what_it_is():
    s = matrix()
    assert isinstance(s, torch.Tensor) and s.is_sparse and not values().is_sparse
    assert s.layout == torch.sparse_coo != torch.strided
    assert (s.shape, s.size(1), s.dim(), s.ndim, s.numel(), len(s)) == ((2, 3), 3, 2, 2, 6, 2)
    assert s.dtype is torch.double and s.is_floating_point() and not s.is_complex()
    assert (s.sparse_dim(), s.dense_dim(), s._nnz()) == (2, 0, 3)
    assert not s.requires_grad and s.is_leaf
    assert "nnz=3, layout=torch.sparse_coo" in repr(s) == str(s)


def test_to_dense_and_back():
    dense = matrix().to_dense()
    assert dense.tolist() == [[0, 0, 3], [4, 0, 5]]
    assert dense.to_sparse().indices().tolist() == INDICES
    assert dense.to_sparse().values().tolist() == [3, 4, 5]
    assert dense.to_dense() is dense
    assert torch.tensor(2.0).to_sparse().to_dense().tolist() == 2.0
    assert torch.zeros(2, 2).to_sparse()._nnz() == 0
    assert torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2)).to_dense().tolist() == [
        [1, 2],
        [0, 0],
        [3, 4],
    ]
    assert torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0]).shape == (3,)


def test_positions_given_twice_add_up():
    s = torch.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], (4,))
    assert s.to_dense().tolist() == [2, 0, 4, 0]
    with pytest.raises(RuntimeError, match=r"Cannot get indices on an uncoalesced tensor, please call .coalesce\(\)"):
        s.indices()
    with pytest.raises(RuntimeError, match="Cannot get values on an uncoalesced tensor"):
        s.values()
    assert s._indices().tolist() == [[2, 0, 2]] and s._values().tolist() == [1, 2, 3]
    c = s.coalesce()
    assert c.is_coalesced() and not s.is_coalesced() and c.coalesce() is c
    assert c.indices().tolist() == [[0, 2]] and c.values().tolist() == [2, 4]


def test_gradients_reach_the_values():
    v = values(requires_grad=True)
    s = torch.sparse_coo_tensor(INDICES, v, (2, 3))
    assert s.requires_grad and not s.is_leaf or s.stored is v
    (s.to_dense() ** 2).sum().backward()
    assert v.grad.tolist() == [6, 8, 10]
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    c = torch.sparse_coo_tensor([[2, 0, 2]], w, (4,)).coalesce()
    (g,) = torch.autograd.grad((c.values() ** 2).sum(), w)
    assert g.tolist() == [8, 4, 8]
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    (x.to_sparse().to_dense() ** 2).sum().backward()
    assert x.grad.tolist() == [[0, 4], [6, 0]]


def test_a_sparse_leaf():
    s = matrix(requires_grad=True)
    assert s.is_leaf and s.requires_grad and s.grad is None
    (s.to_dense() ** 2).sum().backward()
    assert s.grad.is_sparse and s.grad.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    assert not s.detach().requires_grad and s.detach().requires_grad_().requires_grad
    assert s.clone().requires_grad and s.clone().to_dense().tolist() == s.to_dense().tolist()


def test_gradcheck_at_the_stored_positions():
    s = matrix(requires_grad=True)
    before = s.to_dense().tolist()
    for options in ({"check_sparse_nnz": True}, {"masked": True}, {"masked": True, "fast_mode": True}):
        assert torch.autograd.gradcheck(lambda s: s.to_dense() ** 2, s, **options)
    assert torch.autograd.gradcheck(lambda s, x: s.to_dense() @ x, (s, values(requires_grad=True)), masked=True)
    assert torch.autograd.gradgradcheck(lambda s: s.to_dense() ** 3, s, masked=True)
    assert s.to_dense().tolist() == before
    with pytest.raises(RuntimeError, match="expects all tensor inputs are dense when check_sparse_nnz is set to False"):
        torch.autograd.gradcheck(lambda s: s.to_dense() ** 2, s)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        torch.autograd.gradcheck(lambda s: s.clone(), s, masked=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[0, 3]], [1.0, 2.0], (2,)), "size is inconsistent with indices: for dim 0, size is 2 but found index 3"),
        (([[0, -1]], [1.0, 2.0], (2,)), "found negative index -1 for dim 0"),
        (([[0, 1]], [1.0, 2.0, 3.0], (2,)), "same nnz, but got nnz from indices: 2, nnz from values: 3"),
        (([[0, 1]], [1.0, 2.0], (2, 2)), r"len\(size\) = 2, sparse_dim = 1, dense_dim = 0"),
        (([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 3)), r"values has incorrect size, expected \[2, 3\], got \[2, 2\]"),
        (([0, 1], [1.0, 2.0], (2,)), r"indices must be sparse_dim x nnz, but got: \[2\]"),
        (([[0.0, 1.0]], [1.0, 2.0], (2,)), "indices must be an int64 tensor"),
    ],
)
def test_parts_that_do_not_fit(arguments, words):
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_coo_tensor(*arguments)


REFUSED = {
    "operator": lambda s: s * 2,
    "reflected": lambda s: 2 + s,
    "function": torch.exp,
    "reduction": lambda s: s.sum(),
    "product": lambda s: s @ values(),
    "index": lambda s: s[0],
    "in place": lambda s: s.add_(1),
    "numpy": lambda s: s.numpy(),
    "grad": lambda s: torch.autograd.grad(s.to_dense().sum(), s),
    "backward": lambda s: s.backward(),
}


@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused(use):
    with pytest.raises(NotImplementedError, match=r"Call \.to_dense\(\) and go on from there"):
        use(matrix(requires_grad=True))
