"""The primitives of `fgrad.scipy` obey the laws that hold of every primitive."""

import numpy as np
import pytest

from fgrad.check import check_primitive
from fgrad.core import Primitive
from fgrad.ops import elementwise, special
from fgrad.scipy import values

X = np.array([0.3, 0.55, 0.8])
ORDERS = np.array([1, 2, 3])  # integers are not differentiated
ARGUMENTS = {
    **dict.fromkeys("jv yv iv ive kv gammainc gammaincc gammainc_slope stdtr stdtrit".split(), (ORDERS, X)),
    "betainc": (ORDERS, ORDERS[::-1], X),
    "hurwitz_zeta": (ORDERS + 1, X),
}
WITHOUT_DERIVATIVES = {"riemann_zeta"}  # test_special.py holds its values and its refusal
INHERITED = vars(elementwise).keys() | vars(special).keys()
NAMES = sorted(
    n for n, x in vars(values).items() if isinstance(x, Primitive) and n not in INHERITED | WITHOUT_DERIVATIVES
)


@pytest.mark.parametrize("name", NAMES)
def test_laws(name):
    check_primitive(getattr(values, name), *ARGUMENTS.get(name, (X,)))
