"""Words for the kernels of `torch.compile`, which report, findings and page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepcontext.ui.format import shorten_path

if TYPE_CHECKING:
    from deepcontext.profiler.summaries.compiled_kernels import CompiledKernel


def lines_text(kernel: CompiledKernel, folder: str) -> str:
    """Return the lines that a kernel computes: ``net.py:7, 8; loss.py:3``, "" where not known.

    Args:
        kernel: the kernel.
        folder: where the run began; files are relative to it.
    """
    lines: dict[str, set[int]] = {}
    for frame in kernel.lines:
        lines.setdefault(shorten_path(frame.file, folder), set()).add(frame.line)
    text = "; ".join(f"{file}:{', '.join(map(str, sorted(of)))}" for file, of in lines.items())
    return text if kernel.is_complete or not text else f"{text} and others"


def operators_text(kernel: CompiledKernel) -> str:
    """Return the operators fused into a kernel: ``sin, mul, relu``, "" where not known."""
    return ", ".join(name.removeprefix("aten.") for name in kernel.operators)
