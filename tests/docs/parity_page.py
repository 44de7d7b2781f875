"""`python -m tests.docs.parity_page > docs/parity.md`: every public function, and which transforms it works under.

The four columns are outcomes: the samples that the parity tests use are run through `jvp`, `vjp`, `vmap` and `jit`, and
the results are held against one another. An outcome other than "yes" is said in a word.
"""

import inspect
import sys
import warnings
from functools import reduce

import numpy as np

import fgrad
import fgrad.nn
import fgrad.numpy as fnp
import fgrad.scipy
from fgrad import errors
from tests.docs.numpys_absent import ABSENT
from tests.numpy import linalg_samples, samples
from tests.numpy.laws import Call, assert_same, outputs
from tests.scipy import samples as scipy_samples


def find(module, name):
    """Return what a dotted name means in a module."""
    return reduce(getattr, name.split("."), module)


# Functions whose tests are not of the table's form, each by a call that shows them.
A, B = samples.A34, samples.A45
BESIDES = {
    "at": (lambda x, y: fnp.at(x)[1:].multiply(y[:2, :4]), [samples.call(A, B)]),
    "vectorize": (lambda x, y: fnp.vectorize(lambda a, b: a * b)(x, y), [samples.call(A, A)]),
    "roots": (fnp.roots, [samples.known(np.array([1.0, -6.0, 11.0, -6.0]))]),
    "copyto": (fnp.copyto, [samples.call(A, A)]),
    "fill_diagonal": (fnp.fill_diagonal, [samples.call(A, np.array(2.0))]),
    "place": (fnp.place, [samples.call(A, A > 0, A)]),
    "put": (fnp.put, [samples.call(A, [0, 1], A[0, :2])]),
    "put_along_axis": (fnp.put_along_axis, [samples.call(A, samples.I1[:, None], A, 1)]),
    "putmask": (fnp.putmask, [samples.call(A, A > 0, A)]),
    **dict.fromkeys(("shares_memory", "may_share_memory"), (fnp.shares_memory, [])),
    "from_dlpack": (fnp.from_dlpack, [samples.rough(A)]),
    "fromfile": (fnp.fromfile, []),
}
PLACES = {
    "fgrad.numpy": (fnp, samples.TABLE | {name: cases for name, (_, cases) in BESIDES.items()}),
    "fgrad.numpy.linalg": (fnp.linalg, linalg_samples.LINALG),
    "fgrad.numpy.fft": (fnp.fft, linalg_samples.FFT),
    "fgrad.nn": (fgrad.nn, samples.NN),
    **{f"fgrad.scipy.{name}": (find(fgrad.scipy, name), rows) for name, rows in scipy_samples.TABLES.items()},
}
TRIED = 2  # samples of a function for each column; the parity tests run all
UNKNOWN = (errors.NonConcreteBooleanIndexError, errors.TracerArrayConversionError)

HEADER = """# What works under which transform

Every public function of `fgrad.numpy`, `fgrad.nn` and `fgrad.scipy`. The columns are outcomes of running the function's
samples, and a test holds this page against the code; `python -m tests.docs.parity_page` prints it.

| word | means |
| --- | --- |
| yes | done and checked: forward and reverse agree, `vmap` is the stack, `jit` is the function |
| – | nothing to do: no floating input that matters, or no traced input at all |
| known | needs values, since they decide the result's shape; `size=` where the signature has it lifts this |
| refused | raises an error that says why, and what to do |

`yes` for forward and reverse is for the differentiable arguments: `grad` by an argument that has no derivative in
closed form is refused by name. What NumPy's functions do on integers, bools and flags is in
[conventions](conventions.md).
"""


def page():
    """Return the page as Markdown."""
    parts = [HEADER]
    for place, (module, table) in PLACES.items():
        parts.append(f"\n## {place}\n\n| function | forward | reverse | vmap | jit | notes |\n| --- |{' --- |' * 5}\n")
        parts += [row(module, name, cases) for name, cases in sorted(table.items())]
    parts.append(ABSENT_HEADER)
    parts += [f"| {' '.join(f'`{n}`' for n in names.split())} | {reason} |\n" for reason, names in ABSENT.items()]
    return "".join(parts)


ABSENT_HEADER = """
## fgrad.scipy.optimize, fgrad.scipy.interpolate

`RegularGridInterpolator` is a class, differentiated by its samples and its points, forward and reverse, under `vmap`
and `jit`.

`minimize`, `root` and `least_squares` run SciPy's solvers and are not differentiated themselves; they take exact
gradients, Jacobians and products with Hessians from fgrad.

## NumPy's names that are not here

| names | why |
| --- | --- |
"""


def row(module, name, cases):
    """Return a function's line of the page."""
    function = public = find(module, name)
    if module is fnp and name in BESIDES:
        function, _ = BESIDES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        states = [state(function, cases) for state in (forward, reverse, mapped, compiled)]
    return f"| `{name}` | {' | '.join(states)} | {note(public, cases)} |\n"


def note(function, cases):
    """Return the first line of a function's documentation, and whether some forms need known values."""
    line = inspect.getdoc(function).partition("\n")[0].rstrip(".").replace("|", "\\|")
    some = any(case.known for case in cases) and not all(case.known for case in cases)
    return line + ("; some forms need known values" if some else "")


# ------------------------------------------------------------------------------------------------------- states


def forward(function, cases):
    return worst(lambda case: Derivatives(function, case).push(), smooth(cases))


def reverse(function, cases):
    return worst(lambda case: Derivatives(function, case).check_pull(), smooth(cases))


def mapped(function, cases):
    def run(case):
        f = Call(function, case)
        out = fgrad.vmap(lambda *xs: numbers(f(*xs)))(*[np.stack([x, x]) for x in f.arrays])
        assert_same(out, [np.stack([y, y]) for y in numbers(f(*f.arrays))], case.close)

    return worst(run, [case for case in traceable(cases) if case.batched or case.known])


def compiled(function, cases):
    def run(case):
        f = Call(function, case)
        assert_same(fgrad.jit(lambda *xs: numbers(f(*xs)))(*f.arrays), numbers(f(*f.arrays)), case.close)

    return worst(run, traceable(cases))


def traceable(cases):
    """Return the cases with arrays to trace; those first whose values may stay unknown."""
    return sorted([case for case in cases if Call(None, case).arrays], key=lambda case: case.known)


def smooth(cases):
    return [case for case in cases if case.smooth and Derivatives(None, case).places]


def worst(run, cases):
    """Return the state that running the first cases comes to."""
    if not cases:
        return "–"
    try:
        for case in cases[:TRIED]:
            if not case.known or case is cases[0]:
                run(case)
    except UNKNOWN:
        return "known"
    except (TypeError, NotImplementedError):
        return "refused"
    return "yes"


def numbers(result):
    """Return the arrays of a result; what else it holds (texts, dtypes, types) no transform concerns."""
    kinds = (np.ndarray, np.generic, fgrad.core.Tracer, int, float, complex)
    return [y for y in outputs(result) if isinstance(y, kinds)]


class Derivatives:
    """A call as a function of its floating arrays, with a tangent for each."""

    def __init__(self, function, case):
        self.call = Call(function, case)
        self.places = [k for k, x in enumerate(self.call.arrays) if x.dtype.kind in "fc"]
        self.points = [self.call.arrays[k] for k in self.places]
        self.tangents = [weights(x) for x in self.points]

    def __call__(self, *xs):
        full = list(self.call.arrays)
        for k, x in zip(self.places, xs, strict=True):
            full[k] = x
        return [y for y in numbers(self.call(*full)) if np.result_type(y).kind in "fc"]

    def push(self):
        return fgrad.jvp(self, self.points, self.tangents)[1]

    def check_pull(self):
        """Assert that what the pullback pairs with the tangents is what cotangents pair with the pushed ones."""
        out, pull = fgrad.vjp(self, *self.points)
        cts = [weights(y) for y in out]
        pulled, pushed = pull(cts), self.push()
        sides = [paired(cts, pushed), paired(pulled, self.tangents)]
        np.testing.assert_allclose(*sides, rtol=1e-4, atol=1e-4)  # some samples are in float32


def weights(x):
    """Return numbers of the shape and dtype of an array that are no multiples of one another."""
    steps = np.cos(1.0 + np.arange(x.size)).reshape(x.shape)
    return (steps * (1 - 0.5j) if x.dtype.kind == "c" else steps).astype(x.dtype)


def paired(xs, ys):
    return sum(np.sum(np.asarray(x, complex) * y).real for x, y in zip(xs, ys, strict=True))


if __name__ == "__main__":
    sys.stdout.write(page())
