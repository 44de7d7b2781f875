"""The kernel benchmark: `python -m fgrad.triton_kernels.bench`.

With a GPU it times; without one it reports what the machine code needs on each target, so that a kernel that gets worse
is noticed in ordinary tests. What is measured is described by cases (`cases`), the measurement is `static` or `device`,
and `report` prints, saves, compares and draws.
"""
