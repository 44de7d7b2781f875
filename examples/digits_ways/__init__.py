"""One model, written three ways: pure functions, tensors that record themselves, and a loss by Triton kernels."""
