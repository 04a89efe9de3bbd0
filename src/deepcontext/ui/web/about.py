"""The answer to a page's first question: which profiles are open, and how far to trust them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from deepcontext.errors import ProfileDataError, QueryError
from deepcontext.profiler.format import node_sections, source_text
from deepcontext.profiler.model.job import sections as job_sections
from deepcontext.profiler.summaries.basis import Part, basis_of
from deepcontext.profiler.summaries.memory import memory_use
from deepcontext.profiler.summaries.phases import PHASES, shown_phase
from deepcontext.profiler.summaries.ranks import rank_count
from deepcontext.profiler.summaries.steps import step_times
from deepcontext.profiler.summaries.tables import TABLES
from deepcontext.profiler.views.layers import OPTIONAL_LAYERS, Layer, layer_of_frame
from deepcontext.ui.format import format_bytes
from deepcontext.ui.labels import figures
from deepcontext.ui.measures import measures
from deepcontext.ui.run_facts import run_facts
from deepcontext.ui.web.answers import (
    AboutAnswer,
    Calls,
    CollectorAnswer,
    PartAnswer,
    PoolAnswer,
    ProfileAnswer,
    SectionAnswer,
)
from deepcontext.ui.web.open_profiles import OpenProfile
from deepcontext.ui.web.roofline import has_roofline
from deepcontext.ui.web.time_line import steps_shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.grouping import Spread
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.open_profiles import OpenProfiles

_LARGEST_SECTION: Final = 1_000_000
_LAYER_OF_ROLE: Final = {
    "parameter": Layer.PYTHON,
    "gradient": Layer.GPU,
    "optimizer": Layer.MODULE,
    "activation": Layer.OPERATOR,
    "input": Layer.COMPILED,
    "temporary": Layer.SCOPE,
}


def about(profiles: OpenProfiles, notices: Sequence[str] = ()) -> AboutAnswer:
    """Return the open profiles; `notices` tell the reader about limits of the page itself."""
    return AboutAnswer(
        [
            _profile(each) if isinstance(each, OpenProfile) else ProfileAnswer(each.name)
            for each in profiles.refresh()
        ],
        list(notices),
        list(profiles.jobs),
        profiles.compared,
    )


def one_profile(profiles: OpenProfiles, file: int) -> ProfileAnswer:
    """Return what `about` says of a profile, reading it if need be.

    Raises:
        DeepContextError: the profile cannot be read.
    """
    return _profile(profiles.get(file))


def shown_sections(profile: Profile) -> list[str]:
    """Return the names of the payloads that a page shows as they are.

    Those of joined ranks are packed and have views of their own, as has source text, which may be left out.
    """
    of_views = {*job_sections.ALL, *node_sections.NODE_SECTIONS, source_text.SECTION}
    return sorted(set(profile.sections) - of_views)


def section(profiles: OpenProfiles, file: int, name: str) -> SectionAnswer:
    """Return a named payload.

    Raises:
        QueryError: the profile has no such payload, or it is not JSON or too large for a page.
    """
    profile = profiles.get(file).profile
    if name not in profile.sections:
        known = ", ".join(sorted(profile.sections)) or "none"
        raise QueryError(f"this profile has no section '{name}'; it has: {known}")
    payload = profile.sections[name]
    if len(payload) > _LARGEST_SECTION:
        raise QueryError(
            f"section '{name}' has {format_bytes(len(payload))}, a page shows up to "
            f"{format_bytes(_LARGEST_SECTION)}; read it with Profile.load(...).sections"
        )
    try:
        return SectionAnswer(name, json.loads(payload))
    except ValueError as error:
        raise QueryError(f"section '{name}' is not JSON: {error}") from error


def calls_of(spread: Spread | None) -> Calls | None:
    """Return the distribution of single calls for an answer."""
    if spread is None:
        return None
    return Calls(spread.count, spread.mean, spread.sd, spread.minimum, spread.maximum)


def _profile(opened: OpenProfile) -> ProfileAnswer:
    basis = basis_of(opened.profile)
    profile = basis.profile
    run = basis.whole if basis.part is Part.STEADY else profile
    layers = np.unique(layer_of_frame(profile.frames.kind))
    phases = np.unique(shown_phase(profile.tree))
    return ProfileAnswer(
        name=opened.name,
        version=opened.version,
        command=list(profile.run.command),
        script=profile.run.script,
        cwd=profile.run.cwd,
        exit_reason=profile.run.exit_reason,
        start_unix_ns=run.run.start_unix_ns,
        wall_ns=run.run.wall_ns // basis.ranks,
        node_count=len(profile.tree),
        facts=[list(each) for each in run_facts(run).items()],
        steps=calls_of(step_times(run)),
        memory=_memory(run),
        measures=measures(profile),
        layers=[layer.label for layer in OPTIONAL_LAYERS if layer in layers],
        phases=[phase.label for phase in PHASES if phase in phases],
        ranks=rank_count(profile),
        roofline=has_roofline(profile),
        kept_steps=len(steps_shown(profile)),
        tables=_tables(profile),
        sections=shown_sections(profile),
        warnings=list(profile.trust.warnings),
        collectors=[
            CollectorAnswer(each.name, str(each.status), each.reason, figures(dict(each.details)))
            for each in profile.trust.collectors
        ],
        counters=dict(profile.trust.counters),
        hook_cost_ns_per_event=profile.trust.hook_cost_ns_per_event,
    )


def _tables(profile: Profile) -> list[str]:
    """Return the names of the tables that have rows."""
    kinds = set(np.unique(profile.frames.kind).tolist())
    has_user_lines = bool(profile.is_user_code().any())
    return [
        name
        for name, table in TABLES.items()
        if table.kind in kinds and (name != "line" or has_user_lines)
    ]


def _memory(profile: Profile) -> list[PoolAnswer]:
    try:
        use = memory_use(profile)
    except ProfileDataError:  # the trust report and the section itself say so
        return []
    if use is None:
        return []
    return [
        PoolAnswer(
            name=pool.name,
            peak_bytes=pool.peak_bytes,
            live_bytes=pool.live_bytes,
            growth_bytes=pool.growth_bytes,
            growth_steps=use.growth_steps,
            parts=[
                PartAnswer(
                    "optimizer state" if role == "optimizer" else role,
                    size,
                    _LAYER_OF_ROLE.get(role, Layer.ROOT).label,
                    metric if (metric := f"peak_{role}_bytes") in profile.metrics else "peak_bytes",
                )
                for role, size in pool.peak_role_bytes.items()
            ],
        )
        for pool in use.pools
        if pool.peak_bytes
    ]
