"""Random numbers: generators, `manual_seed`, and the distributions that tensors are filled from.

Draws come from NumPy's Philox, one stream per generator; the same seed gives the same numbers, though not torch's.
"""

from __future__ import annotations

import contextlib
import threading
import types
from typing import ClassVar

import numpy as np

from fgrad.extend import TABLE as P
from fgrad.extend import Batch, state

from .. import devices, dtypes, views
from ..tensor import Tensor, wrap
from .create import beside, enter_factory, filled, made, numpy_dtype, shape_of
from .table import FUNCTIONS, define, zero_slope


class Generator:
    """A source of random numbers with a state of its own."""

    def __init__(self, device="cpu"):
        self.device = dtypes.device(device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        """Start the stream of numbers that belongs to `seed`, and return the generator."""
        self._seed = int(seed)
        self.random = np.random.Generator(np.random.Philox(key=self._seed % 2**64))
        return self

    def initial_seed(self):
        """Return the seed last set."""
        return self._seed

    def seed(self):
        """Seed from the system, and return the seed."""
        self.manual_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]))
        return self._seed

    def get_state(self):
        """Return the state as a byte tensor."""
        state = self.random.bit_generator.state
        words = [
            *state["state"]["counter"],
            *state["state"]["key"],
            *state["buffer"],
            state["buffer_pos"],
            state["has_uint32"],
            state["uinteger"],
        ]
        return wrap(np.array(words, np.uint64).view(np.uint8))

    def set_state(self, new_state):
        """Go back to a state that `get_state` returned."""
        words = new_state._data.copy().view(np.uint64)
        state = self.random.bit_generator.state
        state["state"] = {"counter": words[:4].copy(), "key": words[4:6].copy()}
        state["buffer"] = words[6:10].copy()
        state["buffer_pos"], state["has_uint32"], state["uinteger"] = (int(w) for w in words[10:13])
        self.random.bit_generator.state = state
        return self


default_generator = Generator()


class _Drawing(threading.local):
    """How draws are made in this thread: None, or what `randomness` says under the innermost vmap."""

    randomness = None


_drawing = _Drawing()


@contextlib.contextmanager
def drawing(randomness):
    """Draw as vmap's `randomness` says inside."""
    outer = _drawing.randomness
    _drawing.randomness = randomness
    try:
        yield
    finally:
        _drawing.randomness = outer


def source(generator):
    """Return NumPy's generator behind `generator`, None meaning the default one; RuntimeError if vmap refuses draws."""
    random = (generator or default_generator).random
    if _drawing.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    return _ForEach(random) if _drawing.randomness == "different" else random


class _ForEach:
    """NumPy's generator as vmap sees it that draws for each example: every draw has a batch of them."""

    _sizes: ClassVar = {"random": 0, "standard_normal": 0, "integers": 2, "uniform": 2, "normal": 2, "exponential": 1}

    def __init__(self, random):
        self._generator = random
        self.batch = state.interpreter
        while not isinstance(self.batch, Batch):
            self.batch = self.batch.parent

    def __getattr__(self, name):
        if name not in self._sizes:
            raise NotImplementedError(f"{name} draws under vmap with randomness='different' are not here")
        place = self._sizes[name]

        def draw(*args):
            size = (self.batch.size, *args[place])
            return self.batch.wrap(
                P["copy"], getattr(self._generator, name)(*args[:place], size, *args[place + 1 :]), 0
            )

        return draw


def manual_seed(seed):
    """Seed the default generator and return it."""
    return default_generator.manual_seed(seed)


def seed():
    """Seed the default generator from the system and return the seed."""
    return default_generator.seed()


def initial_seed():
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state():
    """Return the state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Put the default generator's state back at the end of the block."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


for fun in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    define(fun.__name__, fun, method=False, out=False)
FUNCTIONS["Generator"] = Generator
FUNCTIONS["default_generator"] = default_generator
RANDOM = types.SimpleNamespace(
    manual_seed=manual_seed, seed=seed, initial_seed=initial_seed, get_rng_state=get_rng_state,
    set_rng_state=set_rng_state, fork_rng=fork_rng, default_generator=default_generator,
)  # fmt: skip


def _normal(shape, d, generator=None):
    random = source(generator)
    if d.kind == "c":
        return ((random.standard_normal(shape) + 1j * random.standard_normal(shape)) / np.sqrt(2)).astype(d)
    return random.standard_normal(shape).astype(d)


def _uniform(shape, d, generator=None):
    random = source(generator)
    if d.kind == "c":
        return (random.random(shape) + 1j * random.random(shape)).astype(d)
    if d == dtypes.FLOAT32:
        return random.random(shape, np.float32)
    return random.random(shape).astype(d)


filled("randn", _normal)
filled("rand", _uniform)


def randint(*bounds, size=None, generator=None, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    bounds = list(bounds)
    if size is None:
        size = bounds.pop()
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    data = source(generator).integers(low, high, shape_of((size,)))
    return made(data.astype(numpy_dtype(dtype, dtypes.INT64)), requires_grad, place)


def randint_like(input, low, high=None, *, dtype=None, device=None, requires_grad=False):
    low, high = (0, low) if high is None else (low, high)
    made_like = {"dtype": dtype or input.dtype, "device": device or input.device, "requires_grad": requires_grad}
    return randint(low, high, tuple(input._data.shape), **made_like)


def randperm(n, *, generator=None, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    return made(source(generator).permutation(n).astype(numpy_dtype(dtype, dtypes.INT64)), requires_grad, place)


def _drawn_from(out, *parameters):
    """Return a draw that depends on its parameters with derivative 0, as torch has it."""
    for x in parameters:
        out = zero_slope(out, x) if isinstance(x, Tensor) and views.requires_grad(x) else out
    return out


def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None, requires_grad=False):
    place = devices.number_of(device)
    if size is None:
        a, b = (x if isinstance(x, Tensor) else wrap(np.asarray(x, dtypes.default.real)) for x in (mean, std))
        shape = np.broadcast_shapes(a._data.shape, b._data.shape)
        noise = drawn(_normal(shape, a._data.dtype, generator), mean, std)
        return _drawn_from((noise * b.detach() + a.detach()).detach(), mean, std)
    return made(
        _normal(shape_of((size,)), numpy_dtype(dtype), generator) * numpy_dtype(dtype).type(std)
        + numpy_dtype(dtype).type(mean),
        requires_grad,
        place,
    )


def drawn(values, *parameters):
    """Return draws as a tensor where the first tensor among their parameters is."""
    like = next((x for x in parameters if isinstance(x, Tensor)), None)
    return made(values, place=None if like is None else beside(like, None))


def bernoulli(input, p=None, *, generator=None):
    chance = devices.on_host(input._data) if p is None else _from_tensor(p)
    found = source(generator).random(input._data.shape) < chance
    return _drawn_from(drawn(found.astype(input._data.dtype), input), input)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    weights = np.atleast_2d(devices.on_host(input._data)).astype(float)
    rows = [source(generator).choice(w.size, num_samples, replace=replacement, p=w / w.sum()) for w in weights]
    return drawn(np.asarray(rows if input._data.ndim == 2 else rows[0], np.int64), input)


def poisson(input, generator=None):
    found = source(generator).poisson(devices.on_host(input._data))
    return _drawn_from(drawn(found.astype(input._data.dtype), input), input)


for fun in (randint_like, poisson):
    define(fun.__name__, fun, method=False, out=False)
for fun in (randint, randperm):
    enter_factory(fun.__name__, fun)
define("normal", normal, method=False)
for fun in (bernoulli, multinomial):
    define(fun.__name__, fun)


def filler(name, draw):
    """Attach the method that fills a tensor in place with draws of `draw(numpy generator, shape, *parameters)`."""

    def method(self, *args, generator=None, **kwargs):
        views.check_inplace(self)
        values = np.asarray(draw(source(generator), self._data.shape, *args, **kwargs)).astype(self._data.dtype)
        return self.copy_(drawn(values, self))

    method.__name__ = name
    setattr(Tensor, name, method)


def _from_tensor(p):
    return devices.on_host(p._data) if isinstance(p, Tensor) else p


def _range(random, shape, *bounds):
    low, high = (0, 2**24) if not bounds else (0, bounds[0]) if len(bounds) == 1 else bounds
    return random.integers(low, high, shape)


filler("normal_", lambda random, shape, mean=0.0, std=1.0: random.normal(mean, std, shape))
filler("uniform_", lambda random, shape, a=0.0, b=1.0: random.uniform(a, b, shape))
filler("bernoulli_", lambda random, shape, p=0.5: random.random(shape) < _from_tensor(p))
filler("exponential_", lambda random, shape, lambd=1.0: random.exponential(1 / lambd, shape))
filler("cauchy_", lambda random, shape, median=0.0, sigma=1.0: median + sigma * random.standard_cauchy(shape))
filler("log_normal_", lambda random, shape, mean=1.0, std=2.0: random.lognormal(mean, std, shape))
filler("geometric_", lambda random, shape, p: random.geometric(p, shape))
filler("random_", _range)
