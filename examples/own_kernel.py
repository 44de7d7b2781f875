"""A Triton kernel of one's own, from idea to training, on a machine without a GPU.

Snake, x + sin(a x)² / a with a learnt `a` per channel, lets a network hold a period (Liu, Hartwig and Ueda, 2020). Its
gradient by `a` sums over rows: a second kernel, without atomics. The pair is checked, compiled for GPUs, and trained.
"""

import numpy as np
import plots
import triton
import triton.language as tl
from optimizers import adam, zeros_like

import fgrad

ROWS, CHANNELS = 16, 32  # the tile of one program


@triton.jit
def snake_kernel(x, a, out, rows, channels, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Compute a tile of the value."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    inside = (row < rows) & (channel < channels)
    value = tl.load(x + row * channels + channel, mask=inside, other=0.0)
    rate = tl.load(a + channel, mask=channel < channels, other=1.0)
    wave = tl.sin(rate * value)
    tl.store(out + row * channels + channel, value + wave * wave / rate, mask=inside)


@triton.jit
def snake_backward_kernel(ct, x, a, dx, da, rows, channels, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
    """Go down the rows of some channels; sum up what belongs to `a` on the way."""
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    rate = tl.load(a + channel, mask=channel < channels, other=1.0)
    total = tl.zeros((1, CHANNELS), tl.float32)
    for start in range(0, rows, ROWS):
        row = (start + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (channel < channels)
        value = tl.load(x + row * channels + channel, mask=inside, other=0.0)
        cotangent = tl.load(ct + row * channels + channel, mask=inside, other=0.0)
        wave, slope = tl.sin(rate * value), tl.sin(2 * rate * value)
        tl.store(dx + row * channels + channel, cotangent * (1 + slope), mask=inside)
        by_rate = cotangent * (value * slope - wave * wave / rate) / rate
        total += tl.sum(by_rate.to(tl.float32), axis=0)[None, :]
    tl.store(da + channel, total, mask=channel < channels)


def forward(x, a):
    """Launch the kernel of the value."""
    rows, channels = x.shape
    grid = (triton.cdiv(rows, ROWS), triton.cdiv(channels, CHANNELS))
    return fgrad.triton_call(
        snake_kernel, x, a, out_shape=x, grid=grid, rows=rows, channels=channels, ROWS=ROWS, CHANNELS=CHANNELS
    )


def backward(ct, x, a):
    """Launch the kernel of both gradients."""
    rows, channels = x.shape
    sizes = {"rows": rows, "channels": channels, "ROWS": ROWS, "CHANNELS": CHANNELS}
    grid = triton.cdiv(channels, CHANNELS)
    return fgrad.triton_call(snake_backward_kernel, ct, x, a, out_shape=(x, a), grid=grid, **sizes)


def reference(x, a):
    """Say what the kernels are to compute."""
    return x + np.sin(a * x) ** 2 / a


snake = fgrad.kernel_op(forward, backward, reference, wrt=(0, 1), name="snake")


def model(p, t):
    """Return a network of one hidden layer of snakes."""
    return snake(t[:, None] @ p["w"] + p["b"], p["a"]) @ p["out"]


def fit(rng, steps):
    """Fit a wave, and return its times, its values, the weights and the losses."""
    t = np.linspace(-3, 3, 48, dtype=np.float32)
    y = np.sin(4 * t) + 0.3 * t
    shapes = {"w": (1, 40), "b": (40,), "out": (40,)}
    p = {name: rng.normal(size=shape).astype(np.float32) / 3 for name, shape in shapes.items()}
    p["a"] = np.full(40, 2, np.float32)
    step = fgrad.value_and_grad(lambda p: ((model(p, t) - y) ** 2).mean())
    losses, state = [], (0, zeros_like(p), zeros_like(p))
    for _ in range(steps):
        value, gradient = step(p)
        p, state = adam(p, gradient, state, rate=0.03)
        p = fgrad.tree.map(np.float32, p)
        losses.append(float(value))
    return t, y, p, losses


def main(out, steps=150, targets=("sm_90", "gfx942")):
    """Check the pair, train with it, draw what it learnt."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(37, 41)).astype(np.float32)  # sizes that fill no tile
    report = snake.check(x, np.linspace(0.5, 2, 41, dtype=np.float32), targets=targets)
    t, y, p, losses = fit(rng, steps)
    print(f"loss after {steps} steps: {losses[-1]:.4f}, from {losses[0]:.4f}")

    picture, axes = plots.figure(width=6)
    wide = np.linspace(-6, 6, 200, dtype=np.float32)
    axes.plot(wide, model(p, wide), label="network")
    axes.plot(t, y, ".", label="data")
    axes.legend()
    plots.save(picture, out / "own_kernel.svg")
    return report, losses


if __name__ == "__main__":
    plots.run(main, __doc__)
