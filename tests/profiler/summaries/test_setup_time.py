"""Importing and compiling are separate from the program's work, and each counts once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.summaries.account import Cause, account
from deepcontext.profiler.summaries.setup_time import SetupTime, setup_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

LIBRARY = "/usr/lib/python3.11/site-packages/torch/__init__.py"
ROOT = Frame(FrameKind.ROOT, "")
MAIN = Frame(FrameKind.THREAD, "MainThread")
SCRIPT = Frame(FrameKind.PYTHON, "<module>", "/home/me/train.py", 1)
IMPORTED = Frame(FrameKind.PYTHON, "<module>", LIBRARY, 1)
OWN_MODULE = Frame(FrameKind.PYTHON, "<module>", "/home/me/model.py", 1)
COMPILING = Frame(FrameKind.MARKER, "torch.compile: compiling")


def _sampled(profile: Profile, values: dict[int, int]) -> Profile:
    rows = MetricRows(
        SAMPLED_CPU_TIME_NS,
        np.array(list(values), np.uint32),
        np.full(len(values), 1, np.uint64),
        np.array(list(values.values()), np.int64),
    )
    return dataclasses.replace(profile, metrics={**profile.metrics, SAMPLED_CPU_TIME_NS.name: rows})


def _of(make: MakeProfile, frames: Sequence[Frame], values: dict[int, int]) -> SetupTime | None:
    """Return the setup time of a chain of frames, each below the previous one."""
    parents = [0, *range(len(frames) - 1)]
    return setup_time(_sampled(make(parents, frames), values))


def test_time_below_an_import_is_importing(make_profile: MakeProfile) -> None:
    reading = Frame(FrameKind.PYTHON, "load", LIBRARY, 7)
    found = _of(make_profile, [ROOT, MAIN, SCRIPT, IMPORTED, reading], {2: 5, 3: 100, 4: 20})
    assert found == SetupTime(elapsed_ns=125, importing_ns=120, compiling_ns=0)
    assert found.working_ns == 5


def test_a_line_of_the_user_below_an_import_is_work(make_profile: MakeProfile) -> None:
    """Test runners import the user's modules, and a user module may compute while it is imported."""
    runner = Frame(FrameKind.PYTHON, "<module>", LIBRARY.replace("torch", "pytest"), 1)
    found = _of(make_profile, [ROOT, MAIN, runner, OWN_MODULE], {2: 5, 3: 100})
    assert found == SetupTime(elapsed_ns=105, importing_ns=0, compiling_ns=0)


def test_code_from_a_string_is_no_import(make_profile: MakeProfile) -> None:
    """A notebook's kernel runs cells, a library runs what it has generated."""
    kernel = Frame(FrameKind.PYTHON, "run_cell", LIBRARY, 9)
    cell = Frame(FrameKind.PYTHON, "<module>", "<generated>", 1)
    found = _of(make_profile, [ROOT, MAIN, SCRIPT, kernel, cell], {3: 5, 4: 100})
    assert found == SetupTime(elapsed_ns=105, importing_ns=0, compiling_ns=0)


def test_a_program_from_a_string_imports(make_profile: MakeProfile) -> None:
    """As `python -c` does, and children of `multiprocessing`."""
    program = Frame(FrameKind.PYTHON, "<module>", "<string>", 1)
    found = _of(make_profile, [ROOT, MAIN, program, IMPORTED], {2: 5, 3: 100})
    assert found == SetupTime(elapsed_ns=105, importing_ns=100, compiling_ns=0)


def test_the_start_of_the_profiler_counts_as_an_import(make_profile: MakeProfile) -> None:
    start = Frame(FrameKind.MARKER, "deepcontext: start")
    found = _of(make_profile, [ROOT, MAIN, SCRIPT, start], {2: 5, 3: 100})
    assert found == SetupTime(elapsed_ns=105, importing_ns=100, compiling_ns=0)


def test_an_import_below_a_compiler_is_compiling(make_profile: MakeProfile) -> None:
    found = _of(make_profile, [ROOT, MAIN, SCRIPT, COMPILING, IMPORTED], {3: 10, 4: 20})
    assert found == SetupTime(elapsed_ns=30, importing_ns=0, compiling_ns=30)


def test_measured_and_sampled_compiling_count_alike(
    make_profile: MakeProfile,
) -> None:
    jitted = Frame(FrameKind.OPERATOR, "jit(step)")
    compiling = Frame(FrameKind.PHASE, "jax: compiling")
    frames = [ROOT, MAIN, SCRIPT, jitted, compiling]
    profile = make_profile([0, 0, 1, 2, 3], frames, host_time_ns={3: 7, 4: 90})
    found = setup_time(_sampled(profile, {2: 3}))
    assert found == SetupTime(elapsed_ns=100, importing_ns=0, compiling_ns=90)


def test_other_threads_do_not_count(make_profile: MakeProfile) -> None:
    worker = Frame(FrameKind.THREAD, "worker")
    profile = make_profile([0, 0, 1, 0, 3], [ROOT, MAIN, SCRIPT, worker, IMPORTED])
    assert setup_time(_sampled(profile, {2: 5, 4: 100})) == SetupTime(5, 0, 0)


def test_without_samples_there_is_no_setup_time(make_profile: MakeProfile) -> None:
    assert setup_time(make_profile([0, 0], [ROOT, MAIN], host_time_ns={1: 5})) is None


def test_the_call_of_a_backward_that_compiles_it_is_compiling(make_profile: MakeProfile) -> None:
    """What happens inside an operator is its time, also what torch.compile does in the first backward."""
    frames = [ROOT, MAIN, SCRIPT, Frame(FrameKind.OPERATOR, "CompiledFunctionBackward"), COMPILING]

    def of(calls: Sequence[int], sampled: dict[int, int]) -> int:
        parents = [0, *range(len(frames) - 1)]
        profile = make_profile(
            parents, frames, host_time_ns={3: sum(calls)}, call_samples_ns={3: calls}
        )
        profile = _sampled(profile, {2: 5, **sampled})
        found = setup_time(profile)
        assert found is not None
        assert account(profile).of(Cause.COMPILING) == found.compiling_ns
        return found.compiling_ns

    assert of([900, 10, 10, 10], {4: 7}) == 890 + 7
    assert of([900], {4: 7}) == 900 + 7
    assert of([900], {}) == 0
