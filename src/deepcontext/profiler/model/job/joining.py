"""Join partial results into one; associative and commutative.

Everything is exact except the spread of single events (`MetricRows.m2`), a sum of floating-point
numbers. Does not leave anything out (`bounds.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deepcontext.errors import UserError
from deepcontext.profiler.format import nccl, rank_collectives, source_text
from deepcontext.profiler.model.grouping import Groups
from deepcontext.profiler.model.job import collectives
from deepcontext.profiler.model.job.columns import join_columns
from deepcontext.profiler.model.job.part import Part, Paths, grouped_paths, joined_by_key
from deepcontext.profiler.model.job.rank_steps import chosen
from deepcontext.profiler.model.job.spread import join_spreads
from deepcontext.profiler.model.job.sums import moved, sum_rows
from deepcontext.profiler.model.job.trust_sums import join_trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deepcontext.profiler.model.job.rank_row import RankRow


def join(parts: Sequence[Part]) -> Part:
    """Return the partial result of the ranks of all parts.

    Raises:
        ProfileDataError: two call paths have one key.
        UserError: two parts have the same rank, or define a metric differently.
    """
    if len(parts) == 1:
        return parts[0]
    rows = _rows(parts)
    groups = Groups.of(np.concatenate([part.paths.key for part in parts]))
    ends = np.cumsum([len(part.paths) for part in parts])[:-1]
    positions = np.split(groups.of_row(), ends)
    numbered = list(zip(parts, positions, strict=True))
    sums = sorted({name for part in parts for name in part.sums})
    spreads = sorted({name for part in parts for name in part.spreads})
    kernels = [part.kernels for part in parts if part.kernels is not None]
    return Part(
        paths=grouped_paths(groups, _paths(parts)),
        frames=joined_by_key(item for part in parts for item in part.frames.items()),
        sums={
            name: sum_rows([
                moved(part.sums[name], position) for part, position in numbered if name in part.sums
            ])
            for name in sums
        },
        spreads={
            name: join_spreads([
                part.spreads[name].at(position)
                for part, position in numbered
                if name in part.spreads
            ])
            for name in spreads
        },
        columns=join_columns([part.columns for part in parts]),
        rows=rows,
        run=min(parts, key=lambda part: part.rows[0].rank).run,
        trust=join_trust([part.trust for part in parts]),
        sections=_sections(parts),
        kernels=min(kernels, key=lambda kernel: kernel[0]) if kernels else None,
        steps=chosen(step for part in parts for step in part.steps),
    )


def _paths(parts: Sequence[Part]) -> Paths:
    tables = [part.paths for part in parts]
    return Paths(
        np.concatenate([table.key for table in tables]),
        np.concatenate([table.parent for table in tables]),
        np.concatenate([table.frame for table in tables]),
        np.concatenate([table.phase for table in tables]),
        np.concatenate([table.seen for table in tables]),
    )


def _rows(parts: Sequence[Part]) -> tuple[RankRow, ...]:
    known: dict[int, RankRow] = {}
    contents: dict[str, RankRow] = {}
    for row in (row for part in parts for row in part.rows):
        same = contents.setdefault(row.content, row) if row.content else row
        if same is not row:
            raise UserError(
                f"'{same.name}' and '{row.name}' are the same profile, which would count twice; "
                "name each profile once"
            )
        if row.rank in known:
            raise UserError(
                f"'{known[row.rank].name}' and '{row.name}' both belong to rank {row.rank}; name one "
                "profile for each rank"
            )
        known[row.rank] = row
    return tuple(known[rank] for rank in sorted(known))


def _sections(parts: Sequence[Part]) -> dict[str, bytes | None]:
    names = sorted({name for part in parts for name in part.sections})
    found: dict[str, bytes | None] = {}
    for name in names:
        held = [part.sections.get(name) for part in parts]
        if name in rank_collectives.JOINED:
            found[name] = collectives.joined([payload for payload in held if payload is not None])
        elif name == nccl.SECTION:
            found[name] = nccl.summed([payload for payload in held if payload is not None])
        elif name == source_text.SECTION:
            found[name] = source_text.joined(payload for payload in held if payload is not None)
        else:
            found[name] = held[0] if len(set(held)) == 1 else None
    return found
