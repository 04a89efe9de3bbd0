"""The roofline as the page shows it: points under a roof, with the sentences of the report.

Figures are those of the report's sections about operations and efficiency (`ui/sections/work.py`), and of
operations of compiled programs (`ui/sections/jax.py`). The page places the points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.model.recorded_operators import has_shapes
from deepcontext.profiler.summaries.arithmetic import arithmetic
from deepcontext.profiler.summaries.basis import basis_of
from deepcontext.profiler.summaries.efficiency import efficiency
from deepcontext.profiler.summaries.jax.programs import SECTION as JAX
from deepcontext.profiler.summaries.jax.programs import device_metric
from deepcontext.profiler.summaries.jax.roofline import jax_roofline
from deepcontext.profiler.summaries.roofline import KINDS, LAUNCH, torch_roofline
from deepcontext.ui.arithmetic_texts import arithmetic_text, efficiency_text, roof_text
from deepcontext.ui.format import format_flops, format_ns
from deepcontext.ui.known_peaks import with_known_peaks
from deepcontext.ui.web.answers import (
    RooflineAnswer,
    RooflineCeiling,
    RooflineChart,
    RooflineGroup,
    RooflinePoint,
)
from deepcontext.ui.web.tables import line_place

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.summaries.arithmetic import Arithmetic
    from deepcontext.profiler.summaries.roofline import Point, Roofline
    from deepcontext.ui.web.open_profiles import OpenProfiles

# More points hide each other, and make the page large.
MOST_POINTS: Final = 150
_OPERATORS: Final = "aten::"
_NO_SHAPES: Final = (
    "The operators of this profile have no shapes, from which their operations and bytes follow. Record the "
    "program again: deepcontext profile --shapes"
)
_NO_TYPES: Final = (
    "The operators of this profile have shapes and no element types, so that their bytes are not known. "
    "Record the program again with this version: deepcontext profile --shapes"
)
_NOT_TIMED: Final = (
    "No operation of a compiled program was timed in this run: it was too short. Record more steps."
)


def has_roofline(profile: Profile) -> bool:
    """Return whether there are operators to place, or to say of how to record them."""
    return JAX in profile.sections or _has_operators(profile)


def roofline(profiles: OpenProfiles, file: int) -> RooflineAnswer:
    """Return the roofline of a profile, with the peaks that are known here.

    Raises:
        UserError: the file of the peaks cannot be read.
        ProfileDataError: a section cannot be read.
    """
    return roofline_answer(with_known_peaks(profiles.get(file).profile, profiles.peaks))


def roofline_answer(profile: Profile) -> RooflineAnswer:
    """Return the roofline of a profile.

    Raises:
        ProfileDataError: the section "jax" cannot be read.
    """
    profile = basis_of(profile).profile
    of_torch, of_jax = _torch(profile), _jax(profile)
    charts = [chart for chart in (of_torch, of_jax) if chart is not None]
    missing = ""
    if of_torch is None and _has_operators(profile):
        missing = _NO_TYPES if has_shapes(profile.frames) else _NO_SHAPES
    elif not charts:
        missing = _NOT_TIMED
    return RooflineAnswer(kinds=list(KINDS), charts=charts, missing=missing)


def _has_operators(profile: Profile) -> bool:
    frames = profile.frames
    names = set(frames.name[frames.kind == FrameKind.OPERATOR].tolist())
    return any(frames.strings[int(name)].startswith(_OPERATORS) for name in names)


def _torch(profile: Profile) -> RooflineChart | None:
    found, moved = torch_roofline(profile), efficiency(profile)
    if found is None or moved is None:
        return None
    counted = arithmetic(profile)
    notes = [*([arithmetic_text(counted)] if counted else []), efficiency_text(moved)]
    chart = _chart(profile, found, "PyTorch", notes)
    return chart if counted is None else replace(chart, **_of_step(counted))


def _of_step(counted: Arithmetic) -> dict[str, Any]:
    is_known = counted.steps > 0 and counted.step_ns > 0
    a_step = counted.total.flops / counted.steps if is_known else 0.0
    return {
        "step_flops_per_second": a_step / counted.step_ns * 1e9 if is_known else 0.0,
        "mfu": counted.mfu,
    }


def _jax(profile: Profile) -> RooflineChart | None:
    found = jax_roofline(profile)
    if found is None:
        return None
    total = found.total
    sentence = (
        f"{format_flops(total.flops)} in {format_ns(total.time_ns)} of operations of compiled programs; the "
        "compiler's count"
    )
    notes = [sentence, roof_text(found.roof)]
    return replace(_chart(profile, found, "JAX", notes), metric=device_metric(profile))


def _chart(profile: Profile, found: Roofline, title: str, notes: list[str]) -> RooflineChart:
    rates = found.roof.peaks.flops_per_second if found.roof else {}
    return RooflineChart(
        title=title,
        metric="",
        notes=notes,
        ceilings=[RooflineCeiling(kind, rates[kind]) for kind in found.types if kind in rates],
        bytes_per_second=found.roof.peaks.bytes_per_second if found.roof else 0.0,
        step_flops_per_second=0.0,
        mfu=None,
        time_ns=found.total.time_ns,
        groups=[
            RooflineGroup(by, len(points), [_point(profile, each) for each in points[:MOST_POINTS]])
            for by, points in found.points.items()
        ],
    )


def _point(profile: Profile, point: Point) -> RooflinePoint:
    work, place = point.work, point.place
    time_ns = sum(point.limit_ns)
    return RooflinePoint(
        name=place.function,
        place=line_place(profile, place.file, place.line),
        node=point.node,
        kind=point.kind,
        limit=point.limit,
        limit_share=max(point.limit_ns) / time_ns if time_ns else 0.0,
        time_ns=work.time_ns,
        calls=work.calls,
        flops=work.flops,
        bytes=work.bytes,
        of_peak=None if point.limit == LAUNCH else work.of_peak,
    )
