"""Text about the kernels of `torch.compile`, shared by report, findings and page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.ui.format import shorten_path

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.compiled_kernels import CompiledKernel


def lines_text(kernel: CompiledKernel, folder: str) -> str:
    """Return the lines that a kernel computes: ``net.py:7, 8; loss.py:3``; "" if unknown.

    Args:
        kernel: the kernel.
        folder: folder where the run began; files are shown relative to the folder.
    """
    lines: dict[str, set[int]] = {}
    for frame in kernel.lines:
        lines.setdefault(shorten_path(frame.file, folder), set()).add(frame.line)
    text = "; ".join(f"{file}:{', '.join(map(str, sorted(of)))}" for file, of in lines.items())
    return text if kernel.is_complete or not text else f"{text} and others"


def operators_text(kernel: CompiledKernel) -> str:
    """Return the operators fused into a kernel: ``sin, mul, relu``; "" if unknown."""
    return ", ".join(name.removeprefix("aten.") for name in kernel.operators)
