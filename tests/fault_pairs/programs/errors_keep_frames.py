"""Process samples; some are damaged and are reported at the end."""

import torch
from torch import nn


class DamagedError(Exception):
    """A sample has values that are not finite."""


def check(spectrum: torch.Tensor) -> None:
    if not bool(torch.isfinite(spectrum).all()):
        raise DamagedError("values that are not finite")


class Pipeline:
    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.model = nn.Linear(2049, 16)

    def run(self, signal: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(4096)
        spectrum = torch.stft(signal, 4096, window=window, return_complex=True).abs()  # the problem
        check(spectrum)
        return self.model(spectrum.T).mean(0)

    def __call__(self, signal: torch.Tensor) -> torch.Tensor | None:
        try:
            return self.run(signal)
        except DamagedError as error:
            self.errors.append(error)
            return None


@torch.no_grad()
def main(samples: int) -> None:
    torch.manual_seed(0)
    pipeline = Pipeline()
    for number in range(samples):
        signal = torch.randn(200_000)
        if number % 2:
            signal[number] = torch.nan
        pipeline(signal)
    print(len(pipeline.errors), "damaged samples, such as", pipeline.errors[0])


if __name__ == "__main__":
    main(200)
