"""Triton kernels, their runtime and their checks; knows nothing of differentiation."""
