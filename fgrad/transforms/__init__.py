"""The transforms: one interpreter per file, the functions people call, and the rules of structured primitives."""

from fgrad.transforms import branches, collective, custom_jvp, custom_vjp, loops

__all__ = ["branches", "collective", "custom_jvp", "custom_vjp", "loops"]
