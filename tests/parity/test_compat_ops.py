"""Every operation of tensors against torch: value, gradients to second order, and the in-place form."""

import pytest

from tests.parity.both import same

pytestmark = pytest.mark.parity

SETUP = """
x = torch.tensor(data(3, 4, seed=1)).requires_grad_()
y = torch.tensor(data(3, 4, seed=2)).requires_grad_()
p = torch.tensor(data(3, 4, seed=3, low=0.5, high=2.0)).requires_grad_()
q = torch.tensor(data(3, 4, seed=4, low=0.5, high=2.0)).requires_grad_()
u = torch.tensor(data(3, 4, seed=5, low=-0.9, high=0.9)).requires_grad_()
v = torch.tensor(data(4, seed=6)).requires_grad_()
w = torch.tensor(data(3, seed=7)).requires_grad_()
s = torch.tensor(data(seed=8)).requires_grad_()
m = torch.tensor(data(4, 4, seed=9)).requires_grad_()
n = torch.tensor(data(4, 4, seed=10)).requires_grad_()
c = torch.tensor(data(2, 3, 4, seed=11)).requires_grad_()
d = torch.tensor(data(2, 4, 5, seed=12)).requires_grad_()
z = torch.tensor(data(3, 4, seed=13, dtype=complex)).requires_grad_()
f = torch.tensor(data(3, 4, seed=14).astype('float32')).requires_grad_()
i = torch.tensor(data(3, 4, seed=15, low=0, high=3, dtype='int64'))
k = torch.tensor([2, 0, 2])
b = torch.tensor(data(3, 4, seed=16) > 0)
leaves = dict(x=x, y=y, p=p, q=q, u=u, v=v, w=w, s=s, m=m, n=n, c=c, d=d, z=z, f=f)

def spd(m):
    return torch.linalg.cholesky(m @ m.t() + torch.eye(4).double())

def flat(out):
    outs = out if isinstance(out, (tuple, list)) else [out]
    return [o for o in outs if isinstance(o, torch.Tensor)]

def seed_like(o, k):
    g = torch.tensor(np.cos(np.arange(o.numel()) + k).reshape(tuple(o.shape)))
    return g.to(o.dtype)
"""

CHECK = """
out = {expression}
outs = flat(out)
show([o.detach() for o in outs])
outs = [o for o in outs if o.requires_grad]
show([o.requires_grad for o in outs])
used = [t for name, t in leaves.items() if name in {names!r}]
if outs:
    seeds = [seed_like(o, j) for j, o in enumerate(outs)]
    first = torch.autograd.grad(outs, used, seeds, create_graph=True, allow_unused=True)
    show([None if g is None else g.detach() for g in first])
    again = [g for g in first if g is not None and g.requires_grad]
    if {second}:
        seeds = [seed_like(g, j + 5) for j, g in enumerate(first) if g is not None and g.requires_grad]
        second = torch.autograd.grad(again, used, seeds, allow_unused=True) if again else [None] * len(used)
        show([None if g is None or not bool((g != 0).any()) else g for g in second])
"""

EXPRESSIONS = """
x + y | x - y | x * y | x / p | x + 2 | 2 - x | x * 2.5 | 3 / p | x / 3 | -x | x + v | x * s | v * x | s * s
w[:, None] * x | x ** 2 | x ** 3 | x ** 0 | p ** 0.5 | p ** x | 2 ** x | p ** -1 | p.pow(y) | x.pow(2.0) | f * 2
f + s | f * i | f / i.add(1) | x.add(y, alpha=3) | x.sub(y, alpha=0.5) | torch.add(x, 2) | torch.mul(x, y)
torch.div(x, p) | torch.true_divide(x, p) | torch.rsub(x, y) | torch.div(x, p, rounding_mode='floor')
torch.div(x, p, rounding_mode='trunc') | x % p | torch.remainder(x, p) | torch.fmod(x, p) | torch.fmod(x, 0.7)
x.remainder(0.7) | torch.floor_divide(i, 2) | i // 2 | -i // 2 | i % 2 | i / 2 | i * 2 | i + 1.5 | b + b | b * 2
i ** 2 | ~b | b & b | b | ~b | b ^ ~b | x.exp() | x.exp2() | x.expm1() | p.log() | p.log2() | p.log10() | p.log1p()
p.sqrt() | p.rsqrt() | x.sin() | x.cos() | x.tan() | u.asin() | u.acos() | x.atan() | x.sinh() | x.cosh() | x.tanh()
x.asinh() | (p + 1).acosh() | u.atanh() | x.sigmoid() | p.reciprocal() | x.erf() | x.erfc() | u.erfinv() | p.lgamma()
p.digamma() | x.abs() | x.sign() | x.floor() | x.ceil() | x.round() | x.trunc() | x.frac() | x.square() | x.relu()
torch.sinc(x) | torch.logit(p / 4) | torch.mvlgamma(p + 3, 2) | torch.atan2(x, y) | torch.maximum(x, y)
torch.minimum(x, y) | torch.max(x, y) | torch.min(x, y) | torch.hypot(x, y) | torch.copysign(x, y) | torch.xlogy(x, p)
torch.logaddexp(x, y) | torch.clamp(x, -0.5, 0.5) | x.clamp(min=0) | x.clamp(max=0.3) | x.clamp_min(0.1)
torch.lerp(x, y, 0.3) | torch.lerp(x, y, u) | torch.addcmul(x, y, p, value=2) | torch.addcdiv(x, y, p)
torch.nan_to_num(x / 0) | torch.fmax(x, y) | torch.where(b, x, y) | torch.where(b, x, 0.) | x.masked_fill(b, 2.0)
x.masked_fill(b, s) | x.masked_select(b) | x.masked_scatter(b, y) | torch.nextafter(x, y).detach() | x == y | x != y
x < y | x >= 0 | x.gt(y) | torch.isnan(x) | torch.isfinite(x) | torch.logical_and(b, x > 0)
torch.isclose(x, x + 1e-9) | x.sum() | x.sum(0) | x.sum(dim=1, keepdim=True) | x.sum((0, 1)) | x.sum(-1)
f.sum(dtype=torch.double) | i.sum() | b.sum() | x.mean() | x.mean(0) | x.mean((0, 1), keepdim=True) | x.prod()
x.prod(1) | x.prod(0, keepdim=True) | i.prod() | x.amax(0) | x.amin((0, 1)) | x.max() | x.min() | x.max(1)
x.min(0, keepdim=True) | i.max() | i.max(0) | x.var() | x.var(0) | x.var(1, unbiased=False) | x.std()
x.std(0, keepdim=True) | torch.var_mean(x, 0) | torch.std_mean(x, 1) | x.var(dim=0, correction=0) | x.norm()
x.norm(2, 1) | x.norm(1) | x.norm(3, 0) | x.norm(float('inf'), 1) | x.norm(p=0.5, dim=1) | x.detach().norm(0)
x.norm(dim=(0, 1)) | torch.dist(x, y) | torch.dist(x, y, 3) | x.renorm(2, 0, 1.0) | x.logsumexp(1)
x.logsumexp((0, 1)) | x.softmax(1) | x.log_softmax(0) | torch.nansum(x) | torch.nanmean(x, 0) | x.all()
(x > 0).any(1) | torch.count_nonzero(x > 0, 0) | x.cumsum(0) | x.cumsum(-1) | x.cumprod(1) | x.logcumsumexp(0)
x.cummax(1) | x.cummin(0) | i.cumsum(0) | m.trace() | x.argmax() | x.argmax(1) | x.argmin(0, keepdim=True) | x.sort()
x.sort(0, descending=True) | x.argsort(1) | x.topk(2) | x.topk(2, 0, largest=False) | x.kthvalue(2)
x.kthvalue(1, 0, keepdim=True) | x.median() | x.median(1) | i.mode(1) | x.nanmedian() | x.mode(0)
torch.quantile(x, 0.3) | torch.quantile(x, 0.5, dim=1) | x.view(4, 3) | x.view(-1) | x.reshape(2, 6)
x.reshape(-1, 2, 3) | x.permute(1, 0) | x.t() | x.T | x.transpose(0, 1) | c.transpose(-1, 0) | c.permute(2, 0, 1)
c.movedim(0, 2) | x.mT | x.unsqueeze(1) | x.unsqueeze(-1) | x.unsqueeze(0).squeeze() | x.unsqueeze(0).squeeze(0)
x.squeeze(0) | c.flatten() | c.flatten(1) | c.flatten(0, 1) | x.unflatten(1, (2, 2)) | v.expand(3, 4)
w[:, None].expand(-1, 4) | w[:, None].expand_as(x) | x.select(0, 1) | x.narrow(1, 1, 2) | x.diagonal()
c.diagonal(1, -1, 0) | c.diagonal(dim1=1, dim2=2) | x.unfold(1, 2, 1) | c.unfold(1, 2, 1)
x.as_strided((2, 2), (1, 2)) | x.as_strided((3, 3), (1, 1), 2) | x.view_as(x) | x.reshape_as(m[:3]) | x.split(2, 1)
x.split([1, 3], 1) | x.chunk(2, 1) | x.chunk(3, 0) | x.unbind() | x.unbind(1) | x.tensor_split(3, 1)
x.tensor_split([1], 1) | torch.cat([x, y]) | torch.cat([x, y], -1) | torch.stack([x, y]) | torch.stack([x, y], -1)
torch.cat([f, x]) | torch.hstack([x, y]) | torch.vstack([x, y]) | torch.dstack([x, y]) | torch.atleast_2d(v)
torch.atleast_3d(v) | torch.atleast_1d(s) | torch.broadcast_tensors(x, v) | torch.meshgrid(v, w, indexing='ij')
torch.block_diag(x, m) | torch.cartesian_prod(v, w) | x.flip(0) | x.flip((0, 1)) | x.roll(1) | x.roll(1, 0)
x.roll((1, 2), (0, 1)) | x.rot90() | x.rot90(2, (0, 1)) | x.repeat(2, 1) | v.repeat(2, 3) | x.repeat_interleave(2)
x.repeat_interleave(2, 1) | x.tile(2) | x.tril() | x.triu(1) | v.diag() | m.diag() | v.diag(1) | v.diag_embed()
x.diag_embed(1) | x.clone() | x.contiguous() | v.diagflat() | x[0] | x[1, 2] | x[:, 1] | x[1:] | x[..., 0] | x[None]
x[:, None, 1:3] | x[::2] | x[k] | x[:, k] | x[k, k] | x[b] | x[b[:, 0]] | x[[0, 2]] | x[[[0, 1], [1, 2]]]
x[k[:, None], torch.tensor([0, 1])] | x[-1] | c[:, 0, [0, 1]] | c[0, :, k] | x[torch.tensor(1)] | c[..., k] | x[()]
x[True] | c[:, k[:2], :] | s[None] | s[...] | x.gather(1, i) | x.gather(0, i) | x.scatter(1, y.argsort(1), y)
x.scatter_add(0, i, y) | x.scatter(1, i[:, :2], 3.0) | x.index_select(1, k) | x.index_add(0, k, y)
x.index_copy(0, torch.tensor([2, 0, 1]), y) | x.index_fill(1, k, 2.0) | x.index_fill(0, k, s) | x.take(i)
x.take_along_dim(i, 0) | x.put(i, y, accumulate=True) | x.index_put((k,), y[0], accumulate=True) | (x > 0).nonzero()
torch.where(x > 0) | x @ m | m @ v | v @ m | v @ v | c @ d | x @ x.t() | torch.mm(x, m) | torch.mv(m, v)
torch.dot(v, v) | torch.bmm(c, d) | torch.matmul(c, m) | torch.matmul(m, d) | torch.ger(w, v) | torch.outer(w, v)
torch.addmm(x, y, m, beta=2, alpha=3) | torch.addmv(w, x, v) | torch.addr(x, w, v)
torch.baddbmm(torch.zeros(2, 3, 5).double(), c, d) | torch.addbmm(torch.zeros(3, 5).double(), c, d)
torch.einsum('ij,kj->ik', x, y) | torch.einsum('bij,bjk->bk', c, d) | torch.tensordot(x, m, 1) | torch.kron(x, m)
torch.inner(x, y) | torch.cross(x[:, :3], y[:, :3], dim=1) | torch.matrix_power(m, 3) | torch.matrix_power(m, -2)
torch.matrix_power(m, 0).detach() | torch.chain_matmul(x, m, n) | torch.cdist(x, y) | torch.cdist(x, y, 1.0)
torch.pdist(x) | m.det() | m.slogdet() | (m @ m.t()).logdet() | m.inverse() | spd(m)
torch.cholesky_solve(x.t(), spd(m)) | torch.linalg.solve(m, x.t()) | torch.linalg.solve(m, v) | torch.linalg.qr(m)
torch.linalg.svdvals(x) | torch.linalg.eigvalsh(m + m.t()) | torch.linalg.norm(x) | torch.linalg.norm(x, ord=1, dim=1)
torch.pinverse(x) | torch.triangular_solve(x.t(), m + 3 * torch.eye(4).double()) | z * z | z + x | z.abs() | z.real
z.imag | z.conj() | z.exp() | z.sin() | z.sum() | z.prod() | z.mean(0) | z.angle() | z.pow(2) | z ** 3 | z * 2j
z / z.conj() | x * 1j | z @ m.to(torch.complex128) | torch.view_as_real(z) | torch.complex(x, y) | torch.polar(p, x)
z.reciprocal() | z.sqrt() | z.log() | z.tanh() | z[0] | z.t() | torch.cat([z, z]) | z.norm() | z.var() | z.cumsum(0)
z.sgn() | torch.trapz(x) | torch.trapezoid(x, dim=0) | torch.diff(x) | torch.cov(x) | torch.special.expit(x)
torch.special.erf(x) | torch.special.xlogy(x, p) | torch.logaddexp2(x, y) | torch.deg2rad(x) | torch.float_power(p, 2)
torch.cumulative_trapezoid(x) | torch.vander(v.detach()) | x.aminmax() | x.aminmax(dim=1, keepdim=True)
torch.frexp(x.detach()) | torch.histogram(x.detach(), 3) | i.unique_consecutive()
i.unique_consecutive(return_inverse=True, return_counts=True) | i.unique_consecutive(dim=0)
x.scatter_reduce(0, i, p, 'sum') | x.scatter_reduce(0, i, p, 'mean', include_self=False)
x.scatter_reduce(0, i, p, 'prod') | x.scatter_reduce(0, i, p, 'amax') | x.scatter_reduce(0, i, p, 'amin')
i.scatter_reduce(1, i, i + 1, 'prod', include_self=False) | x.index_reduce(0, k, p.detach(), 'mean').detach()
x.detach().index_reduce(0, k, p.detach(), 'amax', include_self=False) | x.sum_to_size(1, 4) | x.sum_to_size(4)
x.slice_scatter(p[:1], 0, 0, 1) | x.slice_scatter(p[:, ::2], 1, step=2) | x.select_scatter(p[0], 0, 1)
x.diagonal_scatter(w) | x.detach().as_strided_scatter(p[:2, :2].detach(), (2, 2), (4, 1)) | x.narrow_copy(0, 0, 1)
x.hardshrink() | x.prelu(s.reshape(1)) | x.msort() | x.nanquantile(0.3) | x.quantile(0.3, interpolation='lower')
x.quantile(torch.tensor([.3, .6]).double(), dim=1, keepdim=True) | x.corrcoef() | x[0].corrcoef()
x.ldexp(torch.tensor(2)) | (i + 4).gcd(torch.tensor(6)) | (i + 1).lcm(k[:, None]) | (x / 0).isposinf()
(x / 0).isneginf() | x.ravel() | x.i0() | x.detach().igamma(p).isnan() | torch.igamma(p.detach(), p)
p.detach().igammac(p) | (p + 1).polygamma(1) | torch.polygamma(2, p + 1) | m.matrix_exp() | x.adjoint() | z.adjoint()
x.hsplit(2) | x.vsplit([1]) | c.dsplit(2) | x.is_conj() | x.is_neg() | x.is_cpu | x.dim_order() | str(x.grad_dtype)
x.name | x.is_same_size(y) | s.is_nonzero() | x.resolve_neg() | x.resolve_conj()
x.contiguous().new_empty_strided((2, 3), (1, 2)).stride() | torch.special.entr(p) | torch.special.erfcx(x)
torch.special.i0e(x) | torch.special.i1(x) | torch.special.i1e(x) | torch.special.log_ndtr(x) | torch.special.ndtr(x)
torch.special.ndtri(x.sigmoid()) | torch.special.zeta(p.detach() + 1, p.detach()) | torch.special.xlog1py(x, p)
torch.special.bessel_j0(x.detach()) | torch.special.modified_bessel_k0(p.detach()) | x.H | x.absolute() | u.arccos()
(p + 1).arccosh() | u.arcsin() | x.arcsinh() | x.arctan() | x.arctan2(y) | u.arctanh() | (x > 0).argwhere()
i.bitwise_and(k[:, None]) | i.bitwise_or(1) | i.bitwise_xor(3) | i.bitwise_not() | i.bitwise_left_shift(1)
i.bitwise_right_shift(1) | x.broadcast_to((2, 3, 4)) | x.byte().shape | i.char() | x.cdouble()
(m @ m.t() + torch.eye(4).double()).cholesky() | torch.cholesky_inverse(spd(m)) | x.clamp_max(0.1) | x.clip(-0.1, 0.1)
z.conj_physical() | x.cpu() | x.divide(p) | x.eq(y) | x.ge(y) | x.fix() | x.fliplr() | x.flipud() | torch.fmin(x, y)
x.get_device() | x.greater(y) | x.greater_equal(y) | x.detach().heaviside(y.detach()) | x.isinf() | z.isreal()
x.is_signed() | x.less(y) | x.less_equal(y) | (x > 0).logical_not() | (x > 0).logical_or(b) | (x > 0).logical_xor(b)
x.lt(y) | c.mH | c.moveaxis(0, 1) | x.multiply(y) | x.itemsize | x.nbytes | x.ndim | x.ndimension() | x.nelement()
x.ne(y) | x.neg() | x.negative() | x.not_equal(y) | x.new_empty((2,)).shape | x.positive() | x.rad2deg() | i.short()
x.signbit() | x.split_with_sizes([1, 3], 1) | x.subtract(y) | x.swapaxes(0, 1) | x.swapdims(0, 1)
x.unsafe_chunk(2, 1) | x.unsafe_split_with_sizes([1, 3], 1) | v.vdot(v) | x.is_meta | x.is_mkldnn | x.is_nested
x.is_quantized | str(x.layout) | x.svd()[1] | x.untyped_storage().nbytes()
torch.bucketize(x.detach(), torch.tensor([-1., 0., 1.]).double()) | torch.unique(i) | torch.bincount(k)
torch.histc(x.detach(), 4) | torch.searchsorted(torch.tensor([-1., 0., 1.]).double(), x.detach()) | torch.real(z)
torch.is_tensor(x) | x.numel() | x.dim() | tuple(x.shape) | x.stride() | x.dtype | f.dtype | (f + x).dtype
(i + f).dtype | (i / 2).dtype | (b + 1).dtype | (i + 1.5).dtype | (s.float() * x).dtype | (f * s).dtype
torch.result_type(f, s) | torch.result_type(i, 1.5) | torch.promote_types(torch.int32, torch.float32)
"""

NN = """
F.relu(x) | F.leaky_relu(x) | F.leaky_relu(x, 0.2) | F.elu(x) | F.celu(x, 1.5) | F.selu(x) | F.gelu(x)
F.gelu(x, approximate='tanh') | F.silu(x) | F.mish(x) | F.softplus(x) | F.softplus(x, 2) | F.logsigmoid(x)
F.hardtanh(x) | F.relu6(3 * x) | F.hardsigmoid(x) | F.hardswish(x) | F.softsign(x) | F.tanhshrink(x)
F.softshrink(x) | F.hardshrink(x) | F.glu(x) | F.prelu(x, s.reshape(1)) | F.threshold(x, 0.1, 2.0) | F.softmin(x, 1)
F.linear(x, m) | F.linear(x, m, v) | F.normalize(x) | F.layer_norm(x, (4,)) | F.layer_norm(x, (4,), v, v)
F.embedding(k, m) | F.embedding(i, m, padding_idx=1) | F.one_hot(k, 4) | F.pad(x, (1, 2))
F.pad(x, (1, 1, 0, 2), value=2.0) | F.pad(x, (-1, 1)) | F.cosine_similarity(x, y) | F.pairwise_distance(x, y)
F.bilinear(x[:, :2], y[:, :3], c[:, :2, :3])
F.cross_entropy(x, k) | F.cross_entropy(x, k, reduction='none') | F.cross_entropy(x, k, weight=p[0].detach())
F.cross_entropy(x, k, label_smoothing=0.1) | F.cross_entropy(x, k, ignore_index=2)
F.cross_entropy(x, y.softmax(1)) | F.cross_entropy(x[0], k[0])
F.cross_entropy(x, k, weight=p[0].detach(), label_smoothing=0.2) | F.nll_loss(x, k)
F.nll_loss(x, k, reduction='sum') | F.mse_loss(x, y) | F.mse_loss(x, y, reduction='sum') | F.l1_loss(x, y)
F.smooth_l1_loss(x, y) | F.huber_loss(x, y, delta=0.5) | F.binary_cross_entropy(u.sigmoid(), b.double())
F.binary_cross_entropy_with_logits(x, b.double()) | F.kl_div(x, y.softmax(1), reduction='batchmean')
F.soft_margin_loss(x, b.double() * 2 - 1)
F.conv1d(c, d[:, :3, :3].reshape(2, 3, 3)) | F.conv2d(c[:, None], c[:, None, :2, :2], padding=1)
F.conv2d(c[None], d[:, None, :2, :2], groups=2)
F.conv2d(c[:, None], c[:, None, :2, :2], torch.tensor([0.5, 1.0]).double(), stride=2) | F.max_pool2d(c[None], 2)
F.max_pool1d(c, 2) | F.avg_pool2d(c[None], 2, 1) | F.avg_pool1d(c, 2, padding=1)
F.adaptive_avg_pool2d(c[None], (1, 2)) | F.batch_norm(x, None, None, training=True)
F.batch_norm(x, v.detach(), v.detach() ** 2, v, v) | F.group_norm(c.permute(0, 2, 1), 2)
F.scaled_dot_product_attention(c, c, c) | F.scaled_dot_product_attention(c, c, c, is_causal=True)
F.dropout(x, 0.5, False)
"""


def cases(text):
    return [e.strip() for line in text.strip().splitlines() for e in line.split(" | ") if e.strip()]


ONCE = (
    "copysign",
    "cdist",
    "pdist",
    "F.hardsigmoid",
    "linalg.svdvals",
    "F.prelu",
    "F.mish",
    "F.gelu(x, approximate",
)
"""Operations whose second derivative torch does not have, or only by another subgradient."""


def names_in(expression):
    import re

    return sorted(set(re.findall(r"\b[a-z]\b", expression)))


def program_of(expression):
    """Return the program that shows the value of an expression and its gradients to second order."""
    second = not any(name in expression for name in ONCE)
    text = CHECK.format(expression=expression, names=names_in(expression), second=second)
    return SETUP + "\nF = torch.nn.functional\n" + text


@pytest.mark.parametrize("expression", cases(EXPRESSIONS))
def test_operation(expression):
    same(program_of(expression))


@pytest.mark.parametrize("expression", cases(NN))
def test_nn_functional(expression):
    same(program_of(expression))
