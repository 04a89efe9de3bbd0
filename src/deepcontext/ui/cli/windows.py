"""`--window` and `--warmup`: the part of a run that a command speaks of."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Final

from deepcontext.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.windows import Window
    from deepcontext.ui.cli.command import Parser

ALL: Final = "all"
# The names of `WindowKind`, which is not imported because it imports numpy.
_STEADY: Final = "steady"
_KINDS: Final = ("setup", "warmup", _STEADY, "other", "end")
_STEPS: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


def window_options(parser: Parser, default: str | None = None) -> None:
    """Add the options to a command that reads profiles.

    Args:
        parser: the parser of the command.
        default: the part without the option; None for the steady state, or the run where it has none.
    """
    usual = "the steady state; all without one" if default is None else default
    parser.option(
        "--window",
        type=_window,
        default=default,
        metavar="PART",
        help="part of the run to look at: setup (to the end of the first step), warmup, steady, other "
        f"(another model runs), end (after the last cut), steps A-B, or all (default: {usual})",
    )
    parser.option(
        "--warmup",
        type=_warmup,
        default=None,
        metavar="N",
        help="steps before the steady state, or auto: until step times are in the range of later steps "
        "(default: auto)",
    )


def of_window(profile: Profile, arguments: argparse.Namespace) -> Profile:
    """Return the profile of the wanted part of the run, and print on standard error which it is.

    Raises:
        UserError: the profile has no windows, or none of this kind.
    """
    wanted = arguments.window
    if wanted is None and arguments.warmup is not None:
        wanted = _STEADY
    if wanted is None:
        return profile
    if wanted == ALL:
        return profile.undivided()
    windows = profile.windows_after(arguments.warmup)
    if not windows:
        raise UserError(
            f"{_name(profile)} has no windows: no steps were found in the program (or in a rank), or the "
            "profile is of an older version; leave out --window"
        )
    chosen = _chosen(windows, wanted)
    if not chosen:
        raise UserError(f"{_name(profile)} has no window '{wanted}'; it has {_listed(windows)}")
    part = profile.within(chosen)
    print(f"[deepcontext] what follows is {_said(chosen, profile)}", file=sys.stderr)
    return part


def _chosen(windows: Sequence[Window], wanted: str) -> list[Window]:
    from deepcontext.profiler.model.windows import of_steps  # noqa: PLC0415  imports numpy

    steps = _STEPS.fullmatch(wanted)
    if steps is None:
        return [each for each in windows if each.kind == wanted]
    return of_steps(windows, int(steps[1]), int(steps[2]))


def _said(chosen: Sequence[Window], profile: Profile) -> str:
    from deepcontext.ui.format import format_count, format_ns  # noqa: PLC0415  imports numpy

    wall_ns = sum(each.wall_ns for each in chosen)
    time = f"{format_ns(wall_ns)} of {format_ns(profile.run.wall_ns)}"
    first, last = chosen[0].first_step, chosen[-1].last_step
    kinds = " and ".join(dict.fromkeys(each.kind.value for each in chosen))
    if last < first:
        return f"{kinds}: no step, {time}"
    return f"{kinds}: steps {format_count(first)} to {format_count(last)}, {time}"


def _listed(windows: Sequence[Window]) -> str:
    kinds = dict.fromkeys(each.kind.value for each in windows)
    last = max(each.last_step for each in windows)
    return f"{', '.join(kinds)} and {last} steps"


def _name(profile: Profile) -> str:
    return f"'{profile.source}'" if profile.source else "the profile"


def _window(text: str) -> str:
    steps = _STEPS.fullmatch(text)
    if text in {ALL, *_KINDS} or (steps and 1 <= int(steps[1]) <= int(steps[2])):
        return text
    raise argparse.ArgumentTypeError(
        f"expected {ALL}, {', '.join(_KINDS)} or steps such as 10-50, found '{text}'"
    )


def _warmup(text: str) -> int | None:
    if text == "auto":
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"expected auto or a number of steps, found '{text}'")
