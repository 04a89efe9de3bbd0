"""Correlates signals with themselves, by the transform of complex numbers."""

import torch


def correlate(signals: torch.Tensor) -> torch.Tensor:
    spectrum = torch.fft.fft(signals, n=2 * signals.shape[1])
    return torch.fft.ifft(spectrum * spectrum.conj())[:, : signals.shape[1]].real  # the problem


torch.manual_seed(0)
for _ in range(50):
    signals = torch.randn(40, 8192)
    peaks = correlate(signals).argmax(1)
