"""A partial result: the joined tree of some ranks of a job.

`part_of` makes one of a rank's profile, `joining.py` makes one of several, `artifact.py` writes one
to a file. Invariant: the sum of each metric over the paths equals the sum over the ranks' profiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import child_ends, node_sections, rank_collectives
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.model import compiled_kernels
from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.job import collectives
from deepcontext.profiler.model.job.columns import Columns, encode
from deepcontext.profiler.model.job.joined_file import Folders
from deepcontext.profiler.model.job.path_keys import (
    NO_PATH,
    JoinedFrame,
    frame_keys,
    joined_frames,
    path_keys,
)
from deepcontext.profiler.model.job.rank_row import RankRow, rank_row, rank_times
from deepcontext.profiler.model.job.rank_steps import RankStep, steps_of
from deepcontext.profiler.model.job.spread import Spread
from deepcontext.profiler.model.job.steady import (
    BEFORE,
    STEADY,
    divided,
    facts,
    is_of_part,
    part_sums,
)
from deepcontext.profiler.model.job.sums import moved, sum_rows
from deepcontext.profiler.model.job.trust_sums import TrustSums

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from deepcontext.profiler.model.job.steady import Steps
    from deepcontext.profiler.model.metric_rows import MetricRows
    from deepcontext.profiler.model.profile import Profile
    from deepcontext.profiler.model.profile_model import ProfileModel
    from deepcontext.profiler.model.run_info import RunInfo

    Keys = npt.NDArray[np.uint64]

T = TypeVar("T")

# The analyzers write this section, and write it again for the merged profile.
_FINDINGS: Final = "findings"


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The call paths that any rank has, a row a path by ascending key; all of shape (paths,).

    Attributes:
        key: key of the path, uint64.
        parent: key of the path above, `NO_PATH` for the root, uint64.
        frame: key of the last frame, uint64.
        phase: `Phase`, uint8.
        seen: number of ranks that have the path, uint32.
    """

    key: Keys
    parent: Keys
    frame: Keys
    phase: npt.NDArray[np.uint8]
    seen: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The joined tree of some ranks.

    Attributes:
        paths: the call paths; "position" below is an index into them.
        frames: frames by key.
        sums: by metric its rows, added over the ranks; `node` is a position. Those of set-up and of
            the steady state have names with a prefix (`steady.py`).
        spreads: by `SUM` metric the spread of inclusive values over the ranks; `node` is a position.
        columns: values of each rank at chosen paths, also those of the steady state.
        rows: what is known about each rank, ascending by number.
        run: the run of the rank with the lowest number.
        trust: trust reports of the ranks.
        sections: payloads by name; None where the ranks' payloads differ, or a rank lacks one.
        kernels: number of the lowest rank with compiled kernels, and their payload.
        steps: kept steps.
    """

    paths: Paths
    frames: Mapping[int, JoinedFrame]
    sums: Mapping[str, MetricRows]
    spreads: Mapping[str, Spread]
    columns: Columns
    rows: tuple[RankRow, ...]
    run: RunInfo
    trust: TrustSums
    sections: Mapping[str, bytes | None]
    kernels: tuple[int, bytes] | None
    steps: tuple[RankStep, ...] = ()


def part_of(
    profile: Profile, rank: int, *, name: str = "", content: str = "", steps: Steps | None = None
) -> Part:
    """Return the partial result of one rank.

    Args:
        profile: the rank's profile.
        rank: number of the rank.
        name: file of the profile.
        content: hash of that file.
        steps: the steps that are steady on all ranks of the job; None for a job without.

    Raises:
        ProfileDataError: two call paths have one key.
    """
    frames = joined_frames(profile.frames, Folders.of(profile.run))
    of_frame = frame_keys(frames)
    keys = path_keys(profile.tree, of_frame)
    parent = keys[profile.tree.parent]
    parent[0] = NO_PATH
    groups = Groups.of(keys)
    paths = grouped_paths(
        groups,
        Paths(
            keys,
            parent,
            of_frame[profile.tree.frame],
            profile.tree.phase,
            np.ones(len(keys), np.uint32),
        ),
    )
    # Two nodes of one profile may have one path, for example below two generated files.
    paths = Paths(paths.key, paths.parent, paths.frame, paths.phase, np.ones_like(paths.seen))
    position = groups.of_row()
    values = _inclusive(profile, groups)
    totals = {metric: int(profile.inclusive(metric)[0]) for metric in values}
    kernels = profile.sections.get(compiled_kernels.SECTION)
    row = rank_row(profile, rank, totals, name=name, content=content)
    sums = dict(profile.stored_metrics())
    codes = {metric: encode(column)[:, np.newaxis] for metric, column in values.items()}
    if steps is not None:
        before, part = divided(profile, steps)
        row = replace(row, before=facts(before), steady={**facts(part), **rank_times(part)})
        for prefix, each in ((BEFORE, before), (STEADY, part)):
            sums |= {prefix + metric: rows for metric, rows in part_sums(each).items()}
        codes |= {
            STEADY + metric: encode(column)[:, np.newaxis]
            for metric, column in _inclusive(part, groups).items()
        }
    kept_sections = {node_sections.EXEMPLARS} | ({node_sections.WINDOWS} if steps else set())
    return Part(
        paths=paths,
        frames=joined_by_key(zip(of_frame.tolist(), frames, strict=True)),
        sums={metric: sum_rows([moved(rows, position)]) for metric, rows in sums.items()},
        spreads={metric: Spread.of(column, rank) for metric, column in values.items()},
        columns=Columns(
            key=paths.key,
            rank=np.array([rank], np.int32),
            is_whole=np.ones(1, np.bool_),
            codes=codes,
        ),
        rows=(row,),
        run=profile.run,
        trust=TrustSums.of(profile.trust, rank),
        sections=_sections(profile, rank, without=kept_sections),
        kernels=None if kernels is None else (rank, kernels),
        steps=steps_of(profile, rank, keys),
    )


def without_steady(part: Part) -> Part:
    """Return a part without its steady state, because the job has none that all ranks share."""

    def of_run(found: Mapping[str, T]) -> dict[str, T]:
        return {name: each for name, each in found.items() if not is_of_part(name)}

    if not any(row.steady for row in part.rows):
        return part
    return replace(
        part,
        sums=of_run(part.sums),
        columns=replace(part.columns, codes=of_run(part.columns.codes)),
        rows=tuple(replace(row, before={}, steady={}) for row in part.rows),
        sections={**part.sections, node_sections.WINDOWS: None},
    )


def _sections(profile: ProfileModel, rank: int, *, without: set[str]) -> dict[str, bytes | None]:
    left_out = {
        *without,
        _FINDINGS,
        child_ends.SECTION,
        compiled_kernels.SECTION,
        *rank_collectives.SECTIONS,
    }
    found: dict[str, bytes | None] = {
        # The ranks' nodes are not those of the joined tree.
        name: None if name in node_sections.NODE_SECTIONS else payload
        for name, payload in profile.sections.items()
        if name not in left_out
    }
    for joined, name in rank_collectives.JOINED.items():
        if name in profile.sections:
            payload = collectives.of_rank(rank, profile.sections[name])
            found |= {joined: payload} if payload is not None else {name: None}
    return found


def grouped_paths(groups: Groups, rows: Paths) -> Paths:
    """Return one row for each key; `seen` is added up.

    Raises:
        ProfileDataError: two rows with one key are different paths.
    """
    for column in (rows.parent, rows.frame, rows.phase):
        differing = groups.mixed(column)
        if differing is not None:
            raise collision(int(groups.key[differing]))
    return Paths(
        groups.key,
        groups.first(rows.parent),
        groups.first(rows.frame),
        groups.first(rows.phase),
        groups.sums(rows.seen),
    )


def joined_by_key(frames: Iterable[tuple[int, JoinedFrame]]) -> dict[int, JoinedFrame]:
    """Return frames by key; if one file has several paths, the alphabetically first path.

    Raises:
        ProfileDataError: two different frames have one key.
    """
    known: dict[int, JoinedFrame] = {}
    for key, frame in frames:
        other = known.setdefault(key, frame)
        if other is not frame and other != frame:
            if other.content != frame.content:
                raise collision(key)
            if frame.path < other.path:
                known[key] = frame
    return known


def collision(key: int) -> ProfileDataError:
    """Return the error for two call paths or frames with one key."""
    return ProfileDataError(
        f"cannot join the ranks: two different call paths have the key {key:#018x}, so their costs "
        "would be mixed; report this with the profiles, and open each rank's profile by itself"
    )


def _inclusive(profile: ProfileModel, groups: Groups) -> dict[str, npt.NDArray[Any]]:
    """Return by `SUM` metric the inclusive value at each path, shape (paths,), int64."""
    return {
        metric: groups.sums(profile.inclusive(metric))
        for metric, rows in profile.metrics.items()
        if rows.descriptor.aggregation is Aggregation.SUM
    }
