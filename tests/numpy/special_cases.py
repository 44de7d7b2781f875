"""The array API standard's special cases, written out: what a function gives at signed zeros, infinities and NaN.

A row is a function and its cases `inputs -> value`, separated by `;`. Values are exact but for multiples of pi, and
the sign of a zero counts. `c(a, b)` is a complex number.
"""

REAL = """
    abs: nan -> nan; -0.0 -> 0.0; inf -> inf; -inf -> inf
    acos: nan -> nan; 1.5 -> nan; -1.5 -> nan; 1.0 -> 0.0
    acosh: nan -> nan; 0.5 -> nan; 1.0 -> 0.0; inf -> inf
    asin: nan -> nan; 1.5 -> nan; -1.5 -> nan; 0.0 -> 0.0; -0.0 -> -0.0
    asinh: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> inf; -inf -> -inf
    atan: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> pi/2; -inf -> -pi/2
    atanh: nan -> nan; 1.5 -> nan; -1.5 -> nan; -1.0 -> -inf; 1.0 -> inf; 0.0 -> 0.0; -0.0 -> -0.0
    ceil: inf -> inf; -inf -> -inf; 0.0 -> 0.0; -0.0 -> -0.0; nan -> nan; -0.5 -> -0.0; 2.0 -> 2.0
    cos: nan -> nan; 0.0 -> 1.0; -0.0 -> 1.0; inf -> nan; -inf -> nan
    cosh: nan -> nan; 0.0 -> 1.0; -0.0 -> 1.0; inf -> inf; -inf -> inf
    exp: nan -> nan; 0.0 -> 1.0; -0.0 -> 1.0; inf -> inf; -inf -> 0.0
    expm1: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> inf; -inf -> -1.0
    floor: inf -> inf; -inf -> -inf; 0.0 -> 0.0; -0.0 -> -0.0; nan -> nan; -0.5 -> -1.0
    log: nan -> nan; -1.0 -> nan; 0.0 -> -inf; -0.0 -> -inf; 1.0 -> 0.0; inf -> inf
    log1p: nan -> nan; -1.5 -> nan; -1.0 -> -inf; -0.0 -> -0.0; 0.0 -> 0.0; inf -> inf
    log2: nan -> nan; -1.0 -> nan; 0.0 -> -inf; -0.0 -> -inf; 1.0 -> 0.0; inf -> inf
    log10: nan -> nan; -1.0 -> nan; 0.0 -> -inf; -0.0 -> -inf; 1.0 -> 0.0; inf -> inf
    negative: 0.0 -> -0.0; -0.0 -> 0.0; inf -> -inf; nan -> nan
    reciprocal: inf -> 0.0; -inf -> -0.0; 0.0 -> inf; -0.0 -> -inf; nan -> nan
    round: inf -> inf; -inf -> -inf; 0.0 -> 0.0; -0.0 -> -0.0; nan -> nan; 0.5 -> 0.0; 1.5 -> 2.0; -2.5 -> -2.0
    sign: 0.0 -> 0.0; -0.0 -> 0.0; -3.0 -> -1.0; inf -> 1.0; nan -> nan
    signbit: 0.0 -> False; -0.0 -> True; inf -> False; -inf -> True; -1.0 -> True
    sin: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> nan; -inf -> nan
    sinh: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> inf; -inf -> -inf
    sqrt: nan -> nan; -1.0 -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> inf
    square: -inf -> inf; -0.0 -> 0.0; nan -> nan
    tan: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> nan; -inf -> nan
    tanh: nan -> nan; 0.0 -> 0.0; -0.0 -> -0.0; inf -> 1.0; -inf -> -1.0
    trunc: inf -> inf; -inf -> -inf; 0.0 -> 0.0; -0.0 -> -0.0; nan -> nan; -0.7 -> -0.0
    isfinite: inf -> False; -inf -> False; nan -> False; 0.0 -> True
    isinf: inf -> True; -inf -> True; nan -> False; 1.0 -> False
    isnan: nan -> True; inf -> False; 1.0 -> False
    logical_not: 0.0 -> True; -0.0 -> True; nan -> False; inf -> False
"""
PAIRS = """
    add: nan, 1.0 -> nan; 1.0, nan -> nan; inf, -inf -> nan; -inf, inf -> nan; inf, inf -> inf; -inf, -inf -> -inf;
        inf, 1.0 -> inf; -0.0, -0.0 -> -0.0; -0.0, 0.0 -> 0.0; 0.0, -0.0 -> 0.0; 0.0, 0.0 -> 0.0; 2.0, -2.0 -> 0.0
    subtract: inf, inf -> nan; -inf, -inf -> nan; -0.0, 0.0 -> -0.0; 0.0, 0.0 -> 0.0; inf, -inf -> inf; nan, 0.0 -> nan
    multiply: nan, 1.0 -> nan; inf, 0.0 -> nan; -inf, 0.0 -> nan; 0.0, inf -> nan; -0.0, inf -> nan; inf, -2.0 -> -inf;
        -2.0, 0.0 -> -0.0; -inf, -inf -> inf; -0.0, -1.0 -> 0.0
    divide: nan, 1.0 -> nan; inf, inf -> nan; inf, -inf -> nan; 0.0, 0.0 -> nan; -0.0, 0.0 -> nan; 0.0, 1.0 -> 0.0;
        -0.0, 1.0 -> -0.0; 0.0, -1.0 -> -0.0; 1.0, 0.0 -> inf; 1.0, -0.0 -> -inf; -1.0, 0.0 -> -inf; -1.0, -0.0 -> inf;
        inf, 2.0 -> inf; inf, -2.0 -> -inf; -inf, 2.0 -> -inf; 2.0, inf -> 0.0; -2.0, inf -> -0.0; 2.0, -inf -> -0.0
    floor_divide: nan, 1.0 -> nan; inf, inf -> nan; 0.0, 0.0 -> nan; -0.0, 0.0 -> nan; 0.0, 1.0 -> 0.0;
        -0.0, 1.0 -> -0.0; 1.0, 0.0 -> inf; 1.0, -0.0 -> -inf; 1.0, inf -> 0.0; -5.0, 2.0 -> -3.0
    remainder: nan, 1.0 -> nan; inf, 1.0 -> nan; -inf, inf -> nan; 0.0, 0.0 -> nan; 0.0, 1.0 -> 0.0; -0.0, 1.0 -> 0.0;
        0.0, -1.0 -> -0.0; -0.0, -1.0 -> -0.0; 1.0, 0.0 -> nan; 1.0, inf -> 1.0; -1.0, inf -> inf; 1.0, -inf -> -inf;
        -1.0, -inf -> -1.0; -5.0, 3.0 -> 1.0
    pow: 2.0, nan -> nan; 3.0, 0.0 -> 1.0; nan, 0.0 -> 1.0; nan, -0.0 -> 1.0; inf, 0.0 -> 1.0; nan, 2.0 -> nan;
        1.5, inf -> inf; 1.5, -inf -> 0.0; 1.0, inf -> 1.0; 1.0, -inf -> 1.0; -1.0, inf -> 1.0; 0.5, inf -> 0.0;
        0.5, -inf -> inf; inf, 2.0 -> inf; inf, -2.0 -> 0.0; -inf, 3.0 -> -inf; -inf, 2.0 -> inf; -inf, -3.0 -> -0.0;
        -inf, -2.0 -> 0.0; 0.0, 2.0 -> 0.0; 0.0, -2.0 -> inf; -0.0, 3.0 -> -0.0; -0.0, 2.0 -> 0.0; -0.0, -3.0 -> -inf;
        -0.0, -2.0 -> inf; -2.0, 0.5 -> nan; 1.0, nan -> 1.0
    atan2: nan, 1.0 -> nan; 1.0, nan -> nan; 1.0, 0.0 -> pi/2; 1.0, -0.0 -> pi/2; 0.0, 1.0 -> 0.0; 0.0, 0.0 -> 0.0;
        0.0, -0.0 -> pi; 0.0, -1.0 -> pi; -0.0, 1.0 -> -0.0; -0.0, 0.0 -> -0.0; -0.0, -0.0 -> -pi; -0.0, -1.0 -> -pi;
        -1.0, 0.0 -> -pi/2; 1.0, inf -> 0.0; 1.0, -inf -> pi; -1.0, inf -> -0.0; -1.0, -inf -> -pi; inf, 1.0 -> pi/2;
        -inf, 1.0 -> -pi/2; inf, inf -> pi/4; inf, -inf -> 3*pi/4; -inf, inf -> -pi/4; -inf, -inf -> -3*pi/4
    hypot: inf, nan -> inf; nan, -inf -> inf; -inf, 1.0 -> inf; nan, 1.0 -> nan; 0.0, -0.0 -> 0.0
    logaddexp: nan, 1.0 -> nan; inf, 1.0 -> inf; inf, inf -> inf; -inf, -inf -> -inf; -inf, 1.0 -> 1.0
    maximum: nan, 1.0 -> nan; 1.0, nan -> nan; inf, 1.0 -> inf
    minimum: nan, 1.0 -> nan; 1.0, nan -> nan; -inf, 1.0 -> -inf
    copysign: 1.0, -0.0 -> -1.0; -1.0, 0.0 -> 1.0; 0.0, -3.0 -> -0.0; inf, -1.0 -> -inf; 1.0, -inf -> -1.0
    nextafter: nan, 1.0 -> nan; 0.0, -0.0 -> -0.0; -0.0, 0.0 -> 0.0; inf, inf -> inf
    equal: nan, nan -> False; 0.0, -0.0 -> True; inf, inf -> True; inf, -inf -> False
    not_equal: nan, nan -> True; 0.0, -0.0 -> False
    less: nan, 1.0 -> False; -inf, inf -> True; -0.0, 0.0 -> False
    greater_equal: nan, nan -> False; 0.0, -0.0 -> True; inf, inf -> True
    logical_and: nan, 1.0 -> True; 0.0, nan -> False
    logical_or: 0.0, nan -> True; 0.0, -0.0 -> False
    logical_xor: inf, nan -> False; 0.0, nan -> True
"""
COMPLEX = """
    abs: c(inf, nan) -> inf; c(nan, -inf) -> inf; c(nan, 1.0) -> nan; c(0.0, -0.0) -> 0.0
    conj: c(1.0, 0.0) -> c(1.0, -0.0); c(nan, inf) -> c(nan, -inf)
    exp: c(0.0, 0.0) -> c(1.0, 0.0); c(inf, 0.0) -> c(inf, 0.0); c(1.0, inf) -> c(nan, nan); c(1.0, nan) -> c(nan, nan);
        c(nan, 0.0) -> c(nan, 0.0); c(-inf, 1.0) -> c(0.0, 0.0); c(nan, 1.0) -> c(nan, nan); c(nan, nan) -> c(nan, nan)
    expm1: c(0.0, 0.0) -> c(0.0, 0.0); c(1.0, inf) -> c(nan, nan); c(nan, nan) -> c(nan, nan)
    log: c(-0.0, 0.0) -> c(-inf, pi); c(0.0, 0.0) -> c(-inf, 0.0); c(1.0, inf) -> c(inf, pi/2);
        c(1.0, nan) -> c(nan, nan); c(-inf, 1.0) -> c(inf, pi); c(inf, 1.0) -> c(inf, 0.0);
        c(-inf, inf) -> c(inf, 3*pi/4); c(inf, inf) -> c(inf, pi/4); c(inf, nan) -> c(inf, nan);
        c(-inf, nan) -> c(inf, nan); c(nan, 1.0) -> c(nan, nan); c(nan, inf) -> c(inf, nan); c(nan, nan) -> c(nan, nan)
    log1p: c(-1.0, 0.0) -> c(-inf, 0.0); c(1.0, inf) -> c(inf, pi/2); c(inf, 1.0) -> c(inf, 0.0);
        c(nan, inf) -> c(inf, nan); c(nan, nan) -> c(nan, nan)
    sqrt: c(0.0, 0.0) -> c(0.0, 0.0); c(-0.0, 0.0) -> c(0.0, 0.0); c(1.0, inf) -> c(inf, inf);
        c(nan, inf) -> c(inf, inf); c(1.0, nan) -> c(nan, nan); c(-inf, 1.0) -> c(0.0, inf); c(inf, 1.0) -> c(inf, 0.0);
        c(inf, nan) -> c(inf, nan); c(nan, 1.0) -> c(nan, nan); c(nan, nan) -> c(nan, nan)
    cosh: c(0.0, 0.0) -> c(1.0, 0.0); c(1.0, inf) -> c(nan, nan); c(inf, 0.0) -> c(inf, 0.0);
        c(inf, nan) -> c(inf, nan)
    sinh: c(0.0, 0.0) -> c(0.0, 0.0); c(1.0, inf) -> c(nan, nan); c(inf, 0.0) -> c(inf, 0.0);
        c(nan, 0.0) -> c(nan, 0.0); c(nan, nan) -> c(nan, nan)
    tanh: c(0.0, 0.0) -> c(0.0, 0.0); c(1.0, inf) -> c(nan, nan); c(inf, 1.0) -> c(1.0, 0.0);
        c(nan, 0.0) -> c(nan, 0.0); c(nan, nan) -> c(nan, nan)
    acos: c(0.0, 0.0) -> c(pi/2, -0.0); c(0.0, nan) -> c(pi/2, nan); c(1.0, inf) -> c(pi/2, -inf);
        c(-inf, 1.0) -> c(pi, -inf); c(inf, 1.0) -> c(0.0, -inf); c(inf, inf) -> c(pi/4, -inf);
        c(-inf, inf) -> c(3*pi/4, -inf); c(nan, nan) -> c(nan, nan)
    acosh: c(0.0, 0.0) -> c(0.0, pi/2); c(1.0, inf) -> c(inf, pi/2); c(-inf, 1.0) -> c(inf, pi);
        c(inf, 1.0) -> c(inf, 0.0); c(inf, inf) -> c(inf, pi/4); c(nan, inf) -> c(inf, nan); c(nan, nan) -> c(nan, nan)
    asinh: c(0.0, 0.0) -> c(0.0, 0.0); c(1.0, inf) -> c(inf, pi/2); c(inf, 1.0) -> c(inf, 0.0);
        c(inf, inf) -> c(inf, pi/4); c(nan, 0.0) -> c(nan, 0.0); c(nan, nan) -> c(nan, nan)
    atanh: c(0.0, 0.0) -> c(0.0, 0.0); c(0.0, nan) -> c(0.0, nan); c(1.0, 0.0) -> c(inf, 0.0);
        c(1.0, inf) -> c(0.0, pi/2); c(inf, 1.0) -> c(0.0, pi/2); c(inf, inf) -> c(0.0, pi/2)
    isfinite: c(nan, 0.0) -> False; c(0.0, inf) -> False; c(1.0, 2.0) -> True
    isinf: c(inf, nan) -> True; c(nan, -inf) -> True; c(nan, 1.0) -> False
    isnan: c(nan, 1.0) -> True; c(1.0, nan) -> True; c(inf, nan) -> True; c(1.0, 2.0) -> False
    sign: c(0.0, 0.0) -> c(0.0, 0.0); c(3.0, 4.0) -> c(0.6, 0.8)
"""
REDUCTIONS = """
    max: [1.0, nan] -> nan; [inf, 1.0] -> inf
    min: [nan, 1.0] -> nan; [-inf, 1.0] -> -inf
    mean: [nan, 1.0] -> nan; [inf, 1.0] -> inf; [] -> nan
    prod: [] -> 1.0; [nan, 0.0] -> nan; [0.0, inf] -> nan
    sum: [] -> 0.0; [nan, 1.0] -> nan; [inf, -inf] -> nan
    std: [1.0] -> 0.0; [nan, 1.0] -> nan
    var: [1.0] -> 0.0; [inf, 1.0] -> nan
    all: [] -> True; [nan, 1.0] -> True; [0.0, 1.0] -> False
    any: [] -> False; [nan] -> True; [0.0, -0.0] -> False
    count_nonzero: [0.0, -0.0, nan] -> 1
    argmax: [1.0, nan, 3.0] -> 1; [3.0, 3.0] -> 0
    argmin: [1.0, nan, 0.0] -> 1; [1.0, 1.0] -> 0
"""
# Here NumPy does not do as the standard says (expm1 of inf + 0j: inf + 0j), and fgrad's values are NumPy's.
AS_NUMPY = """
    expm1: c(inf, 0.0) -> c(inf, nan); c(nan, 0.0) -> c(nan, nan)
"""


def cases(text):
    """Return triples of a function's name, its inputs and the value, as texts."""
    lines = []
    for line in text.strip().splitlines():
        if line.startswith("        "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    for line in lines:
        name, _, rest = line.partition(": ")
        for case in rest.split(";"):
            inputs, _, value = case.partition(" -> ")
            yield name, inputs.strip(), value.strip()
