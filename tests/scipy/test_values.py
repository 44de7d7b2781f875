"""The primitives of `fgrad.scipy` obey the laws that hold of every primitive."""

import numpy as np
import pytest

from fgrad.check import check_primitive
from fgrad.core import Primitive
from fgrad.ops import elementwise, special
from fgrad.scipy import matrices, values

X = np.array([0.3, 0.55, 0.8])
ORDERS = np.array([1, 2, 3])  # integers are not differentiated
ARGUMENTS = {
    **dict.fromkeys("jv yv iv ive kv gammainc gammaincc gammainc_slope stdtr stdtrit".split(), (ORDERS, X)),
    **dict.fromkeys(("gammaincinv", "gammainccinv", "expn", "hyp0f1", "owens_t"), (ORDERS, X)),
    **dict.fromkeys(("betainc", "betaincinv", "betainc_slope", "hyp1f1"), (ORDERS, ORDERS[::-1], X)),
    "hyp2f1": (ORDERS, ORDERS[::-1], ORDERS + 1, X),
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


A = np.array([[4.0, 1.0, 0.3], [0.5, 3.0, -0.2], [0.1, 0.7, 5.0]])
ON_MATRICES = {
    "sqrtm": (A,),
    "sylvester_solve": (A[:, :2], A, A[1:, 1:]),
}


@pytest.mark.parametrize("name", ON_MATRICES)
def test_laws_of_matrices(name):
    check_primitive(getattr(matrices, name), *ON_MATRICES[name])
