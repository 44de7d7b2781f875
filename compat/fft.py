"""`torch.fft`: Fourier transforms."""

from .methods.numeric import FFT

globals().update(vars(FFT))
__all__ = sorted(vars(FFT))
