"""What gradients cost, beside other libraries: `python -m benchmarks`.

`workloads` says what is computed, `libraries` how each library computes it, `reference` checks the results, `measure`
takes the time, and `report` shows it beside the targets. Times decide no test.
"""
