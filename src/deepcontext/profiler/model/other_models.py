"""Windows at the beginning or the end of a run in which it runs another model than most of the time.

A script may pretrain one model and then train another: a mean of both is a step of neither. A model is an
outermost module or jitted function. Models that take turns are one kind of step. Does not name windows
(`windows.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.profiler.format.frame import FrameKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from deepcontext.profiler.model.profile_model import ProfileModel

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_PROGRAM: Final = "jit("
# Calls a step, as a part of the usual ones: none but those of a step on the border, and those of a window
# across it.
_NONE: Final = 0.05
_FEW: Final = 0.9


def models(profile: ProfileModel) -> Mask:
    """Return the outermost modules and programs, shape (nodes,)."""
    names = np.array([text.startswith(_PROGRAM) for text in profile.frames.strings], np.bool_)
    is_program = names[profile.frames.name][profile.tree.frame]
    is_operator = profile.is_kind(FrameKind.OPERATOR)
    is_module = profile.is_kind(FrameKind.MODULE)
    around = is_module | is_operator
    return np.asarray((is_module | (is_program & is_operator)) & ~profile.tree.below(around))


def other_models(
    steps: Sequence[int], wall_ns: Sequence[int], calls: Ints, times: Ints
) -> dict[int, int]:
    """Return the windows in which another model runs, each with this model.

    Args:
        steps: number of steps of each window, in order of time.
        wall_ns: elapsed time of each.
        calls: number of calls of operators in each model in each window, shape (windows, models).
        times: time of these operators, same shape.

    Returns:
        Columns of `calls` by row; empty where the model that runs most of the time runs in all windows, or
        takes turns.
    """
    # A jitted function takes its own time on the device: only that it runs is known.
    lasts = (calls > 0).T @ np.array(wall_ns)
    main = int(np.lexsort((times.sum(axis=0), lasts))[-1])
    rate = calls[:, main] / np.maximum(steps, 1)
    usual = rate.max()
    runs = np.flatnonzero(rate > _NONE * usual)
    if not usual or len(runs) != runs[-1] - runs[0] + 1:
        return {}
    # A window across the border belongs to neither.
    first, last = int(runs[0]), int(runs[-1])
    first += bool(first and rate[first] < _FEW * usual)
    last -= bool(last < len(rate) - 1 and rate[last] < _FEW * usual)
    others = calls.copy()
    others[:, main] = 0
    rows = (row for row in range(len(rate)) if not first <= row <= last)
    return {row: int((others * (times + 1))[row].argmax()) for row in rows if others[row].any()}
