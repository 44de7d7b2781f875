"""The in-place form of operations, and random programs of views, writes, hooks and modes, against torch."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity.both import same
from tests.parity.test_compat_ops import SETUP, cases

pytestmark = pytest.mark.parity

WRITES = """
t.add_(y) | t.sub_(y) | t.mul_(y) | t.div_(p) | t.add_(2) | t.add_(y, alpha=3) | t.sub_(v, alpha=2) | t.mul_(s)
t.pow_(2) | t.pow_(3.0) | t.abs_().pow_(y) | t.neg_() | t.exp_() | t.sin_() | t.cos_() | t.tan_() | t.tanh_()
t.sigmoid_() | t.relu_() | t.sqrt_() | t.log_() | t.rsqrt_() | t.reciprocal_() | t.erf_() | t.erfc_() | t.expm1_()
t.log1p_() | t.log2_() | t.log10_() | t.sinh_() | t.cosh_() | t.atan_() | t.floor_() | t.ceil_() | t.round_()
t.trunc_() | t.frac_() | t.sign_() | t.abs_() | t.square_() | t.lgamma_() | t.digamma_() | t.clamp_(-0.5, 0.5)
t.clamp_min_(0.1) | t.clamp_max_(0.1) | t.lerp_(y, 0.3) | t.lerp_(y, u) | t.addcmul_(y, p, value=2)
t.addcdiv_(y, p, value=2) | t.atan2_(y) | t.fmod_(p) | t.remainder_(p) | t.masked_fill_(b, 2.0) | t.masked_fill_(b, s)
t.masked_scatter_(b, y) | t.fill_(2) | t.fill_(s) | t.zero_() | t.copy_(y) | t.copy_(v) | t.copy_(f)
t.index_add_(0, k, y) | t.index_copy_(0, torch.tensor([2, 0, 1]), y) | t.index_fill_(1, k, 2.0)
t.scatter_(1, y.argsort(1), y) | t.scatter_(1, i[:, :2], 3.0) | t.scatter_add_(0, i, y) | t.put_(k[:2], y[0, :2])
t.tril_() | t.triu_(1) | t.cumsum_(0) | t.cumprod_(1) | t.renorm_(2, 0, 1.0) | t.eq_(y) | t.gt_(0) | t.le_(y)
t.ne_(0) | t.lt_(v) | t.ge_(s) | t.addmm_(y, m) | t.addmv_ | t.logit_(0.01) | t.sinc_() | t.xlogy_(p) | t.copysign_(y)
t.hypot_(y) | t.nan_to_num_() | t.requires_grad_() | t.swapaxes_(0, 1) | t.t_() | t.unsqueeze_(0) | t.squeeze_()
t.transpose_(0, 1) | t.erfinv_() | t.float_power_(2) | t.absolute_() | u.clone().acos_() | (p + 1).acosh_()
u.clone().arccos_() | (p + 1).arccosh_() | u.clone().arcsin_() | t.detach().arcsinh_() | t.arctan_() | t.arctan2_(y)
u.clone().arctanh_() | u.clone().asin_() | t.detach().asinh_() | u.clone().atanh_() | t.clip_(-0.1, 0.1)
t.deg2rad_() | t.divide_(p) | t.exp2_() | t.fix_() | t.detach().floor_divide_(p.detach()) | t.greater_(y)
t.greater_equal_(y) | t.less_(y) | t.less_equal_(y) | t.not_equal_(y) | t.detach().logical_and_(y.detach())
t.detach().logical_not_() | t.detach().logical_or_(y.detach()) | t.detach().logical_xor_(y.detach()) | t.multiply_(y)
(p + 3).mvlgamma_(2) | t.negative_() | t.rad2deg_() | t.sgn_() | t.subtract_(y) | t.swapdims_(0, 1)
t.true_divide_(p) | t.index_put_((k[:2],), y[0]) | t.conj_physical_() | m.clone().addr_(v, v)
torch.zeros(3, 5).double().addbmm_(c, d) | torch.zeros(2, 3, 5).double().baddbmm_(c, d) | i.clone().bitwise_and_(1)
i.clone().bitwise_or_(1) | i.clone().bitwise_xor_(1) | i.clone().bitwise_not_() | i.clone().bitwise_left_shift_(1)
i.clone().bitwise_right_shift_(1) | (i + 4).gcd_(k[:, None]) | (i + 1).lcm_(torch.tensor(4)) | t.i0_()
t.ldexp_(torch.tensor(2)) | t.scatter_reduce_(0, i, p, 'sum') | t.detach().index_reduce_(0, k, p.detach(), 'prod')
t.fill_diagonal_(2.0) | t.polygamma_(1) | p.clone().detach().igamma_(p.detach())
p.clone().detach().igammac_(p.detach()) | t.detach().heaviside_(y.detach()) | t.detach().nextafter_(y.detach())
t.as_strided_((2, 2), (1, 1)) | p.detach().apply_(lambda a: a * 2) | p.detach().map_(p.detach(), lambda a, b: a + b)
torch.exp_(t) | torch.sqrt_(p * 1) | t[0].mul_(y[0]) | t[:, 1].exp_() | t.t().add_(w) | t[1:].mul_(s)
t.view(-1)[2:5].mul_(3) | t.select(1, 0).copy_(w) | t.diagonal().mul_(2) | t[0, 1].add_(s) | t.narrow(1, 1, 2).zero_()
t.unsqueeze(0)[0, 2].mul_(v) | t.unfold(1, 2, 2).mul_(2)
"""
STATEMENTS = """
t[0] = y[0] | t[1, 2] = 5 | t[:, 1] = w | t[b] = 0 | t[b] = s | t[k[:2]] = y[0] | t[[0, 2]] = y[:2]
t[..., 0] = 1.5 | t[i[:, 0], 1] = w
t[1:, :2] = y[:2, 2:] | t[None] = y | t[k, 1:3] = 2 | t[torch.tensor([0, 1]), torch.tensor([1, 2])] = v[:2] | t += y
t -= v | t *= s
t /= p | t **= 2 | t %= 0.7 | t[0] += y[1] | t[:, 0] *= w | t[b] += 1 | t[1] -= s
"""

CHECK = """
some = lambda g: None if g is None or not bool((g != 0).any()) else g
t = x * 1.5
alias = t
before = t[0:1]
{statement}
show(t.detach()); show(t.requires_grad); assert alias is t
if t.requires_grad:
    used = [leaf for name, leaf in leaves.items() if name in {names!r}]
    show([some(g) for g in torch.autograd.grad(t, used, seed_like(t, 1), allow_unused=True, retain_graph=True)])
    if {view}:
        show([some(g) for g in torch.autograd.grad(before, used, seed_like(before, 2), allow_unused=True)])
"""


def program_of(statement):
    """Return the program that shows what a statement does to a tensor, its alias, an older view and the gradients."""
    names = sorted({"x", *re.findall(r"\b[a-z]\b", statement)} - {"t"})
    turning = ("t_()", "squeeze_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "requires_grad_")
    view = not any(name in statement for name in turning)
    return SETUP + CHECK.format(statement=statement, names=names, view=view)


@pytest.mark.parametrize("statement", cases(WRITES))
def test_method(statement):
    same(program_of(statement))


@pytest.mark.parametrize("statement", cases(STATEMENTS))
def test_statement(statement):
    same(program_of(statement))


# ------------------------------------------------------------------------------------------------ random programs

VIEWS = (
    "{a}[0]",
    "{a}[1:]",
    "{a}[:, 1]",
    "{a}[..., ::2]",
    "{a}.t()",
    "{a}.view(-1)",
    "{a}.narrow(0, 0, 2)",
    "{a}.diagonal()",
)
VIEWS += (
    "{a}.unsqueeze(0)",
    "{a}.transpose(0, 1)",
    "{a}.select(0, 1)",
    "{a}.view_as({a})",
    "{a}.chunk(2)[0]",
)
OPS = (
    "{a} * {b}",
    "{a} + {b}",
    "{a}.exp()",
    "{a}.tanh()",
    "{a} * 2",
    "{a} - 1",
    "{a}.sum()",
    "{a}.sum(0)",
    "{a}.clone()",
    "{a}.abs()",
)
OPS += ("{a} * {a}", "{a}.relu()", "torch.cat([{a}, {a}])", "{a}.reshape(-1)")
INPLACE = (
    "{a}.mul_(2)",
    "{a}.add_({b}.clone())",
    "{a}.mul_({b}.clone())",
    "{a}.tanh_()",
    "{a}.zero_()",
    "{a}[0] = 3",
    "{a}.copy_({b}.clone())",
    "{a}.add_(1)",
)
INPLACE += (
    "{a}.detach_()",
    "{a}.requires_grad_()",
    "{a}.data.add_(1)",
    "{a}.sin_()",
    "{a}[1:] = {b}[1:].clone()",
    "{a}.fill_(2.5)",
)
MISC = (
    "{a}._base is None and {a}.register_hook(lambda g: g * 2)",
    "{a}._base is None and {a}.retain_grad()",
    "({a} * 1).sum().backward()",
    "{a}.sum().backward(retain_graph=True)",
)
MISC += (
    "show({a}._version)",
    "show({a}.is_leaf)",
    "show(torch.autograd.grad({a}.sum(), leaf, allow_unused=True, retain_graph=True))",
)

# What is written is a copy: torch reads memory that overlaps itself while it writes. Before a write `grad_fn` is asked
# for: without that torch takes a view of a constant for a leaf after the constant was given a history. Hooks go on
# tensors that are no views: torch crashes when one is put on a view that was made in no_grad.
names = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("new"), st.sampled_from(VIEWS + OPS), names, names, st.booleans()),
    st.tuples(st.just("do"), st.sampled_from(INPLACE + MISC), names, names, st.booleans()),
)


def program(choices):
    """Write out a program: every step is tried, and its error shown, so that one that fails ends nothing."""
    lines = [
        "leaf = torch.tensor(data(3, 3, seed=1)).requires_grad_()",
        "ts = [leaf, leaf * 1, leaf * torch.tensor(data(3, 3, seed=2))]",
        "def short(e): return 'an error'",
    ]
    for kind, template, a, b, recorded in choices:
        code = template.format(a=f"ts[{a} % len(ts)]", b=f"ts[{b} % len(ts)]")
        code = f"ts.append({code})" if kind == "new" else f"ts[{a} % len(ts)].grad_fn; {code}"
        lines += ["try:", f"    with torch.set_grad_enabled({recorded or b > 2}):", f"        {code}"]
        lines += ["except (RuntimeError, IndexError, ValueError) as e:", "    show(short(e))"]
    lines += ["for t in ts:", "    show([t, t._version, t._base is None])"]
    lines += ["    try: show(t.grad_fn is None)", "    except RuntimeError as e: show(short(e))", "show(leaf.grad)"]
    return "\n".join(lines)


@settings(max_examples=200)
@given(st.lists(steps, min_size=2, max_size=12))
def test_random_programs(choices):
    same(program(choices))
