"""Moves in loops that no program avoids: those of packages, such as samplers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepcontext.analyzers.questions import programs
from deepcontext.profiler.format.frame import Frame, FrameKind

if TYPE_CHECKING:
    from tests.conftest import MakeProfile


@pytest.mark.parametrize(
    ("file", "is_of_package"),
    [
        ("/opt/lib/python3.11/site-packages/numpyro/util.py", True),
        ("/opt/lib/python3.11/site-packages/jax/_src/lax/loops.py", False),
        ("/home/me/model.py", False),
    ],
)
def test_a_loop_belongs_to_the_innermost_code_that_is_no_framework(
    make_profile: MakeProfile, file: str, *, is_of_package: bool
) -> None:
    profile = make_profile(
        [0, 0, 1, 2],
        [
            Frame(FrameKind.ROOT, ""),
            Frame(FrameKind.PYTHON, "main", "/home/me/train.py", 3),
            Frame(FrameKind.PYTHON, "while_loop", file, 9),
            Frame(FrameKind.HLO, "copy.1"),
        ],
    )
    assert bool(programs._of_packages(profile)[3]) is is_of_package
