"""Programs on the GPU: which equations become one kernel (`fusion`), its Triton text (`source`), and how all runs.

Nothing here is loaded before a Program is wanted for a GPU; Triton itself not before a kernel is.
"""
