"""Settings in JAX's spelling. There is one, and it is always on: 64-bit types."""

from __future__ import annotations

from typing import Any

enable_x64 = True


def update(name: str, value: Any) -> None:
    """Accept `("enable_x64", True)`, also spelled `"jax_enable_x64"`: float64 and int64 are on, always.

    Raises:
        ValueError: 64-bit types are to be switched off.
        AttributeError: there is no such setting.

    Example:
        >>> import fgrad
        >>> fgrad.config.update("enable_x64", True)
    """
    if name not in ("enable_x64", "jax_enable_x64"):
        raise AttributeError(f"fgrad.config has no setting {name!r}; the one there is: 'enable_x64'")
    if not value:
        raise ValueError("64-bit types cannot be switched off; pass float32 arrays for float32 results")
