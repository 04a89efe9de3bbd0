"""Published peaks of GPUs, by the name that the driver gives them.

Dense products, without sparsity; f32 without TF32. A name that is not in the table has no peaks: none is
guessed from a similar one. Rates a second; bytes of the device's memory.

Source of each row:
    H100     NVIDIA H100 Tensor Core GPU data sheet (halves of the figures "with sparsity")
    H200     NVIDIA H200 Tensor Core GPU data sheet
    A100     NVIDIA A100 Tensor Core GPU data sheet; 40 GB: its edition of 2020
    L40S     NVIDIA L40S data sheet
    MI300X   AMD Instinct MI300X accelerator data sheet (matrix figures)
"""

from __future__ import annotations

from typing import Final

from deepcontext.profiler.format.peaks import DevicePeaks

_TERA: Final = 1e12


def _gpu(*, bytes_per_second: float, **tera_flops: float) -> DevicePeaks:
    rates = {kind: rate * _TERA for kind, rate in tera_flops.items()}
    for kind in ("f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"):
        if "f8e4m3fn" in rates:
            rates[kind] = rates["f8e4m3fn"]
    return DevicePeaks("", flops_per_second=rates, bytes_per_second=bytes_per_second * _TERA)


_HOPPER: Final = {
    "f64": 67.0,
    "f32": 67.0,
    "bf16": 989.5,
    "f16": 989.5,
    "f8e4m3fn": 1979.0,
    "i8": 1979.0,
}
_HOPPER_PCIE: Final = {
    "f64": 51.0,
    "f32": 51.0,
    "bf16": 756.5,
    "f16": 756.5,
    "f8e4m3fn": 1513.0,
    "i8": 1513.0,
}
_AMPERE: Final = {"f64": 19.5, "f32": 19.5, "bf16": 312.0, "f16": 312.0, "i8": 624.0}
_ADA: Final = {"f32": 91.6, "bf16": 362.0, "f16": 362.0, "f8e4m3fn": 733.0, "i8": 733.0}
_CDNA3: Final = {
    "f64": 163.4,
    "f32": 163.4,
    "bf16": 1307.4,
    "f16": 1307.4,
    "f8e4m3fn": 2614.9,
    "i8": 2614.9,
}
PUBLISHED: Final = {
    "NVIDIA H100 80GB HBM3": _gpu(bytes_per_second=3.35, **_HOPPER),
    "NVIDIA H100 PCIe": _gpu(bytes_per_second=2.0, **_HOPPER_PCIE),
    "NVIDIA H200": _gpu(bytes_per_second=4.8, **_HOPPER),
    "NVIDIA A100-SXM4-40GB": _gpu(bytes_per_second=1.555, **_AMPERE),
    "NVIDIA A100-SXM4-80GB": _gpu(bytes_per_second=2.039, **_AMPERE),
    "NVIDIA A100-PCIE-40GB": _gpu(bytes_per_second=1.555, **_AMPERE),
    "NVIDIA A100 80GB PCIe": _gpu(bytes_per_second=1.935, **_AMPERE),
    "NVIDIA L40S": _gpu(bytes_per_second=0.864, **_ADA),
    "AMD Instinct MI300X": _gpu(bytes_per_second=5.3, **_CDNA3),
}
