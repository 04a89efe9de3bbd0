"""Profiles of ranks, made of few frames so that paths of several ranks are equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.format.metric import HOST_TIME_NS, Aggregation, MetricDescriptor
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.frame_table import FrameTable
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.tree import Tree
from deepcontext.profiler.model.trust import CollectorReport, TrustReport

ALLOC = MetricDescriptor("alloc_bytes", "bytes", Aggregation.SUM, "bytes")
PEAK = MetricDescriptor("peak_bytes", "bytes", Aggregation.MAX, "bytes")
METRICS = (HOST_TIME_NS, ALLOC, PEAK)
FRAMES = (
    Frame(FrameKind.ROOT, ""),
    Frame(FrameKind.THREAD, "MainThread"),
    Frame(FrameKind.PYTHON, "main", "/home/me/train.py", 3),
    Frame(FrameKind.PYTHON, "main", "/home/me/train.py", 4),
    Frame(FrameKind.OPERATOR, "aten::mm"),
)


@dataclass(frozen=True)
class Made:
    """A rank's tree as plain Python: rows of (parent, frame, phase), and values by metric and node."""

    rank: int
    rows: tuple[tuple[int, int, int], ...]
    values: tuple[dict[int, int], ...]

    def path(self, node: int) -> tuple[tuple[int, int], ...]:
        parent, frame, phase = self.rows[node]
        above = self.path(parent) if node else ()
        return (*above, (frame, phase))

    def profile(self) -> Profile:
        """Return the profile; its frames are in another order for each rank."""
        turned = [*FRAMES[self.rank % 5 :], *FRAMES[: self.rank % 5]]
        texts = list(dict.fromkeys(text for frame in turned for text in (frame.name, frame.file)))
        table = FrameTable(
            np.array([frame.kind for frame in turned], np.uint8),
            np.array([texts.index(frame.name) for frame in turned], np.uint32),
            np.array([texts.index(frame.file) for frame in turned], np.uint32),
            np.array([frame.line for frame in turned], np.uint32),
            texts,
        )
        parent, frame, phase = (np.array(column) for column in zip(*self.rows, strict=True))
        tree, order = Tree.from_parents(parent, (frame - self.rank) % 5, phase)
        node = np.argsort(order)
        rows = {}
        for descriptor, values in zip(METRICS, self.values, strict=True):
            at = sorted((int(node[old]), value) for old, value in values.items())
            if at:
                total = np.array([value for _, value in at], np.int64)
                rows[descriptor.name] = MetricRows(
                    descriptor,
                    np.array([place for place, _ in at], np.uint32),
                    np.ones(len(at), np.uint64),
                    total,
                    maximum=total if descriptor is PEAK else None,
                )
        return Profile(
            frames=table,
            tree=tree,
            metrics=rows,
            run=RunInfo(rank=self.rank, ranks=9, wall_ns=10, hostname=f"n{self.rank // 2}"),
            trust=TrustReport(
                (CollectorReport("torch", Status.RAN, details={"torch": "2.13.0"}),),
                {"events": self.rank},
                100.5,
                ("some rank is slow",) * (self.rank % 2),
            ),
        )


@st.composite
def made_ranks(draw: st.DrawFn) -> list[Made]:
    """Draw up to five ranks of a job."""
    numbers = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5, unique=True))
    # Large values, so that squares need more than 64 bits.
    values = st.dictionaries(st.integers(0, 11), st.integers(1, 2**40), max_size=8)
    ranks = []
    for rank in numbers:
        rows = [(0, 0, int(Phase.NONE))]
        for node in range(1, draw(st.integers(1, 12))):
            above = draw(st.integers(0, node - 1))
            rows.append((above, draw(st.integers(1, 4)), draw(st.integers(0, 1))))
        drawn = tuple(
            {node: value for node, value in draw(values).items() if node < len(rows)}
            for _ in METRICS
        )
        ranks.append(Made(rank, tuple(rows), drawn))
    return ranks
