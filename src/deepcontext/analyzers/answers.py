"""Ask all questions about a profile, and keep one cause of each cost. This file lists the questions once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.base import Analyzer
from deepcontext.analyzers.causes import one_each
from deepcontext.analyzers.questions import (
    backward,
    between_operators,
    compiled,
    device_waits,
    form,
    functions,
    held,
    launches,
    limits,
    loading,
    many_calls,
    models,
    modes,
    places_only,
    ranks,
    slow_steps,
    table,
)
from deepcontext.analyzers.weight import LEAST_WORK_NS
from deepcontext.errors import DeepContextError, UserError
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.setup_time import setup_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from deepcontext.analyzers.causes import Cause
    from deepcontext.analyzers.finding import Finding
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.basis import Basis

QUESTIONS: Final[tuple[ModuleType, ...]] = (
    modes,
    compiled,
    loading,
    models,
    table,
    backward,
    form,
    many_calls,
    functions,
    between_operators,
    launches,
    limits,
    device_waits,
    held,
    ranks,
    slow_steps,
    places_only,
)
# Memory at its peak and its growth.
_OF_RUN: Final = (held,)
_OF_STEADY: Final = (places_only, slow_steps)
# Of the steady state, that compiling takes if it does not end.
_LEAST_COMPILING: Final = 0.05


def answers(profile: Profile) -> list[Finding]:
    """Return the findings of all questions, before they are weighed; computed once for a profile.

    Raises:
        UserError: a question failed; the message names it.
    """
    return profile.once(answers, lambda: one_each(profile, _causes(profile)))


def _causes(profile: Profile) -> Iterable[Cause]:
    basis = basis_of(profile)
    for question in QUESTIONS:
        try:
            for part in _parts(basis, question):
                yield from [replace(each, part=part) for each in question.find(basis.of(part))]
        except DeepContextError:
            raise
        except Exception as error:
            name = question.__name__.rpartition(".")[2]
            raise UserError(
                f"question '{name}' failed: {type(error).__name__}: {error}; report the error to "
                "the authors of deepcontext"
            ) from error


def _parts(basis: Basis, question: ModuleType) -> Sequence[Part]:
    """Return the parts of a run to which a question is put."""
    if basis.rest is None:
        return (basis.part,)
    if question in _OF_RUN:
        return (Part.RUN,)
    if question is compiled:
        return (Part.STEADY if _compiles(basis.profile) else Part.SETUP,)
    if question in _OF_STEADY or _work_ns(basis.rest) < max(
        basis.profile.run.wall_ns, LEAST_WORK_NS
    ):
        return (Part.STEADY,)
    return (Part.STEADY, Part.SETUP)


def _compiles(profile: Profile) -> bool:
    time = setup_time(profile)
    return time is not None and time.compiling_ns >= _LEAST_COMPILING * time.elapsed_ns


def _work_ns(profile: Profile) -> int:
    time = setup_time(profile)
    return 0 if time is None else time.working_ns


def _of(name: str) -> Callable[[Profile], list[Finding]]:
    return lambda profile: [each for each in answers(profile) if each.id == name]


def _analyzer(name: str, question: str, *, names_place_only: bool = False) -> Analyzer:
    return Analyzer(name, question, _of(name), names_place_only=names_place_only)


# Findings are grouped by what a user looks at, and so are the pages of the reference.
ALL: Final[tuple[Analyzer, ...]] = (
    # One cause, one finding: where another analyzer gives the reason, the place is not told again.
    _analyzer("hotspot", "does one line take much of the time?", names_place_only=True),
    _analyzer("kernel_fusion", "could one operator replace many small ones?"),
    _analyzer("forward_backward", "does a backward take many times its forward?"),
    _analyzer("data_loading", "does the step wait for its data?"),
    _analyzer("synchronisation", "where does the host wait for the device?"),
    _analyzer("host_work", "does Python work between operators in each step?"),
    _analyzer("copies", "is time spent on copying and converting tensors?"),
    _analyzer("recompilation", "is the same function compiled again and again?"),
    _analyzer("settings", "is a mode on that costs time and has no use here?"),
    _analyzer(
        "model_calls", "does a model run sample by sample, on padding, or on the same again?"
    ),
    _analyzer("cheaper_operator", "is more computed than is used of a result?"),
    _analyzer("precision", "do matrix products run in a wider type than needed?"),
    _analyzer("far_from_peak", "is an operator far from what the machine can do?"),
    _analyzer("device_starvation", "does the GPU wait for the host?"),
    _analyzer("communication", "does the GPU exchange data while it computes nothing?"),
    _analyzer("stall_reasons", "what do the hot kernels wait for?"),
    _analyzer("launch_configuration", "do launches fill the GPU?"),
    _analyzer(
        "memory", "which lines hold memory at the peak, allocate all the time, or only grow?"
    ),
    _analyzer("rank_imbalance", "does one rank of a job hold up the others?"),
    _analyzer("slow_steps", "do some steps take longer than the others, and at which line?"),
    _analyzer("straggler", "which ranks come last to collectives, and how often?"),
)
