"""Where does the host wait for the device, or would with a GPU, and what is sent to the device again?

`shared/value_reads.py` decides which values a program without a GPU reads, and where they would be.
Invariant: of waits of the host, a program that ran only on CPUs has at most one cause, of severity "info".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepcontext.analyzers.causes import ELAPSED, HOST, Cause, at_place
from deepcontext.analyzers.finding import Severity
from deepcontext.analyzers.shared import source_locations as at
from deepcontext.analyzers.shared.jax_calls import calls_of, waits
from deepcontext.analyzers.shared.repeated_idle import IDLE, repeated_idle
from deepcontext.analyzers.shared.value_reads import value_reads
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import CALL_DURATION_NS
from deepcontext.profiler.model.metric_values import (
    counts_or_zeros,
    exclusive_or_zeros,
    inclusive_or_zeros,
    total,
)
from deepcontext.profiler.model.query import Query
from deepcontext.profiler.summaries.jax.callbacks import callbacks
from deepcontext.profiler.summaries.setup_time import setup_time
from deepcontext.profiler.summaries.steps import step_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepcontext.profiler.model.profile import Profile

_WAIT: Final = "sync_wait_ns"
# Most programs read the loss once a step, which costs a GPU program little.
_MOST_READS_A_STEP: Final = 2.0
# Share of all reads of a step; changing a line with fewer reads helps little.
_LEAST_PART: Final = 0.1
_FEWEST_STEPS: Final = 5
# Of the elapsed time: a loop that was not timed does other work than calling Python, too.
_LEAST_UNTIMED: Final = 0.25
# Arrays of 1 MiB or more that each call copies. Source: measured, jax 0.10.2 on a processor: 0.55 to 0.61
# ns of processor time a byte, for arrays of 8 to 200 MB in new memory; down to a tenth of it in memory that
# was used before.
_REPEATED: Final = "repeated_transfer_bytes"
_NS_PER_BYTE: Final = 0.6


def find(profile: Profile) -> Iterator[Cause]:
    """Return the lines that wait for the device, or make it wait."""
    if _REPEATED in profile.metrics:
        yield from _same_arrays(profile)
    if total(profile, _WAIT):
        yield from _waits(profile, Query(profile, profile.exclusive(_WAIT) > 0), _WAIT)
    elif at.has_jax(profile):
        yield from _callbacks(profile)
        yield from _program_waits(profile)
    elif not at.vendors(profile):  # with a GPU, waits are measured, and the profile has none
        yield from _reads(profile)


def _program_waits(profile: Profile) -> Iterator[Cause]:
    """Find the lines of a JAX program that wait, if there are more waits than launches."""
    mask = waits(profile)
    launches = total(profile, at.JAX_LAUNCHES)
    count = int(counts_or_zeros(profile, CALL_DURATION_NS.name)[mask].sum())
    if launches < _FEWEST_STEPS or count <= _MOST_READS_A_STEP * launches:
        return
    found = list(_waits(profile, Query(profile, mask), HOST))
    # Without a device, the awaited work computes on these cores.
    yield from found if at.has_device(profile) else found[:1]


def _waits(profile: Profile, query: Query, metric: str) -> Iterator[Cause]:
    """Return lines by the time that the host waited, as a share of the run's elapsed time."""
    elapsed = profile.run.wall_ns
    # Without a wait, a device that works all the time has no more work to take.
    most = int(repeated_idle(profile).sum()) if IDLE in profile.metrics else elapsed
    is_measured = metric == _WAIT or at.has_device(profile)
    for location in at.by_line(query, metric):
        saved = min(location.value, most)
        if elapsed:
            count = int(profile.counts(metric)[list(location.nodes)].sum())
            yield at_place(
                "host_waits_for_program" if metric == HOST else "host_waits_for_device",
                location,
                ELAPSED,
                value=saved,
                whole=elapsed,
                severity=None if is_measured else Severity.INFO,
                words={"part": location.value / elapsed},
                evidence={"wait_ns": location.value, "waits_count": count},
            )


def _reads(profile: Profile) -> Iterator[Cause]:
    """Find, without a GPU, lines that read values from tensors several times a step."""
    steps = step_count(profile)
    if steps < _FEWEST_STEPS:
        return
    reads = value_reads(profile)
    a_step = float(counts_or_zeros(profile, CALL_DURATION_NS.name)[reads.nodes()].sum()) / steps
    least = max(1.0, _LEAST_PART * a_step) * steps
    lines = [each for each in at.by_line(reads, HOST) if each.count >= least]
    if a_step <= _MOST_READS_A_STEP or not lines:
        return
    lines.sort(key=lambda line: (-line.count, line.nodes))
    a_step, others = sum(line.count for line in lines) / steps, len(lines) - 1
    more = f" and {others} more {'line' if others == 1 else 'lines'} read" if others else " reads"
    yield Cause(
        key="values_read_in_each_step",
        nodes=([line.nodes[0] for line in lines] + list(lines[0].nodes[1:]))[:8],
        frame=lines[0].frame,
        metric=HOST,
        value=sum(line.value for line in lines),
        words={"more": more, "times": "once" if round(a_step, 1) == 1.0 else f"{a_step:.3g} times"},
        evidence={
            "reads_per_step": round(a_step, 2),
            "lines": ", ".join(at.location_text(profile, line.frame) for line in lines[:8]),
        },
    )


def _callbacks(profile: Profile) -> Iterator[Cause]:
    """Find compiled programs that call Python, and wait for it, in each pass of a loop or each launch.

    A call was timed only if its program ran completely while it was sampled. Of a program that was not timed,
    the time of the whole call is known, and whether the call of Python is in a loop.
    """
    elapsed = profile.run.wall_ns
    for each in callbacks(profile) if elapsed else ():
        nodes, is_timed, place = calls_of(profile, each.module), each.host_ns > 0, each.source
        called = int(inclusive_or_zeros(profile, HOST)[nodes].sum())
        value = each.host_ns if is_timed else called * each.is_in_loop
        if is_timed or value >= _LEAST_UNTIMED * elapsed:
            frame = Frame(FrameKind.PYTHON, place.function, place.file, place.line)
            yield Cause(
                key="program_calls_python" if is_timed else "program_calls_python_untimed",
                nodes=nodes,
                frame=frame if place.file else None,
                metric=ELAPSED,
                value=value,
                whole=elapsed,
                words={
                    "module": each.module,
                    "primitive": each.primitive,
                    "often": "each pass of a loop" if each.is_in_loop else "each launch",
                },
                evidence={"callback_ns": each.host_ns},
            )


def _same_arrays(profile: Profile) -> Iterator[Cause]:
    """Find NumPy arrays that a program gives to jitted functions again and again: each call copies them.

    How long a copy took is not recorded: JAX copies beside the program, which waits for the result.
    """
    setup, copied = setup_time(profile), exclusive_or_zeros(profile, _REPEATED)
    whole = setup.working_ns if setup else profile.run.wall_ns
    query = Query(profile, copied > 0).kind(FrameKind.OPERATOR)
    for location in at.by_line(query, _REPEATED):
        nodes = list(location.nodes)
        count, size = (
            int(counts_or_zeros(profile, _REPEATED)[nodes].sum()),
            int(copied[nodes].sum()),
        )
        yield at_place(
            "same_arrays_from_host",
            location,
            ELAPSED,
            value=int(_NS_PER_BYTE * size),
            whole=whole,
            words={
                "name": profile.frame(nodes[0]).name,
                "calls": count,
                "megabytes": size / max(count, 1) / 1e6,
            },
            evidence={_REPEATED: size, "calls_count": count},
        )
