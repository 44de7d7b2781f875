"""The imperative face of fgrad: tensors that record themselves."""
