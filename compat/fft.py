"""`torch.fft`: Fourier transforms."""

from fgrad.compat.methods.numeric import FFT

globals().update(vars(FFT))
__all__ = sorted(vars(FFT))
