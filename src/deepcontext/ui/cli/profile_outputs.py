"""Where `deepcontext profile` writes: a profile, and a run directory for profiles of other processes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deepcontext.profiler.format import run_directory
from deepcontext.ui.cli.rank_launch import PROFILE_SUFFIX

if TYPE_CHECKING:
    from deepcontext.profiler.recording.launch.options import LaunchOptions


def with_outputs(options: LaunchOptions, stem: str, output: str | None) -> LaunchOptions:
    """Fill in the outputs of a program that is not a rank of a job.

    Args:
        options: all other options.
        stem: name for files about the program, without a suffix.
        output: value of --output.

    Returns:
        the options, with `output` empty if the profile belongs into the run directory.
    """
    is_run = output is not None and output.endswith(run_directory.SUFFIX)
    profile = "" if is_run else output or f"{stem}{PROFILE_SUFFIX}"
    follows = options.children != "none" and not _is_device(profile)
    run = run_beside(output or profile) if is_run or follows else ""
    return replace(
        options,
        output=str(Path(profile).absolute()) if profile else "",
        label=profile,
        run=str(Path(run).absolute()) if run else "",
        run_label=run,
        is_kept=output is not None,
    )


def run_beside(path: str) -> str:
    """Return the run directory of a profile: ``train.dcrun`` of ``train.dcprof``."""
    return f"{path.removesuffix(run_directory.SUFFIX).removesuffix(PROFILE_SUFFIX)}{run_directory.SUFFIX}"


def _is_device(path: str) -> bool:
    # Unlike pathlib, these do not raise for a name that is too long, which `check` reports.
    return os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113
