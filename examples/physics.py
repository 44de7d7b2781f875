"""A double pendulum, from its energies alone: derivatives turn a Lagrangian into equations of motion.

One writes kinetic and potential energy. The accelerations, the conserved energy and how fast two neighbouring starts
drift apart all follow by differentiation, through four thousand steps of an integrator.
"""

import numpy as np
import plots

import fgrad

GRAVITY = 9.81  # m/s²; both rods are 1 m long, both masses 1 kg
STEP, STEPS = 0.005, 4000  # s


def heights_and_speeds(q, v):
    """Return the heights of both masses, in m, and their squared speeds, for angles q and angular speeds v."""
    heights = -np.cumsum(np.cos(q))
    x, y = np.cumsum(np.cos(q) * v), np.cumsum(np.sin(q) * v)
    return heights, x**2 + y**2


def lagrangian(q, v):
    """Return kinetic less potential energy, in J."""
    heights, squares = heights_and_speeds(q, v)
    return squares.sum() / 2 - GRAVITY * heights.sum()


def energy(q, v):
    """Return what motion conserves: v·∂L/∂v - L, in J."""
    return v @ fgrad.grad(lagrangian, 1)(q, v) - lagrangian(q, v)


def acceleration(q, v):
    """Solve d/dt ∂L/∂v = ∂L/∂q for the angular accelerations (Euler and Lagrange)."""
    momentum = fgrad.grad(lagrangian, 1)
    mass = fgrad.jacobian(momentum, 1)(q, v)
    drift = fgrad.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
    return np.linalg.solve(mass, fgrad.grad(lagrangian)(q, v) - drift)


def motion(start):
    """Return the angles at all steps, by the classical method of Runge and Kutta, and the energy at each."""

    def slope(state):
        q, v = state
        return np.stack([v, acceleration(q, v)])

    def step(state, _):
        a = slope(state)
        b = slope(state + STEP / 2 * a)
        c = slope(state + STEP / 2 * b)
        d = slope(state + STEP * c)
        state = state + STEP / 6 * (a + 2 * b + 2 * c + d)
        return state, (state[0], energy(*state))

    return fgrad.lax.scan(step, np.stack([start, np.zeros(2)]), None, length=STEPS)[1]


def main(out):
    """Print the drift of the energy and the growth of a small difference; draw the path."""
    start = np.array([2.0, 2.5])
    angles, energies = fgrad.jit(motion)(start)
    spread = fgrad.jit(lambda s: fgrad.jvp(lambda s: motion(s)[0], (s,), (np.array([1.0, 0.0]),))[1])(start)
    growth = np.linalg.norm(spread, axis=1)
    drift = np.ptp(energies)
    print(f"energy {energies[0]:.4f} J, which drifts by {drift:.1e} J in {STEP * STEPS:.0f} s")
    print("after      a small difference at the start has grown by")
    for seconds in (1, 2, 5, 10):
        print(f"{seconds:3d} s       {growth[round(seconds / STEP) - 1]:12,.1f}")

    picture, (path, divergence) = plots.figure(2)
    x, y = np.sin(angles).cumsum(axis=1), -np.cos(angles).cumsum(axis=1)
    path.plot(x[:, 1], y[:, 1], linewidth=0.7)
    path.set(title="the lower mass", aspect="equal", xlabel="m", ylabel="m")
    divergence.semilogy(STEP * np.arange(1, STEPS + 1), growth, linewidth=1)
    divergence.set(title="growth of a small difference", xlabel="s")
    plots.save(picture, out / "physics.svg")
    return drift, growth


if __name__ == "__main__":
    plots.run(main, __doc__)
