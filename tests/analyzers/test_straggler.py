"""Ranks that come last to collectives: one, rarely, in turn, and none."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console

from deepcontext.analyzers import run_analyzers
from deepcontext.analyzers.questions import ranks as question
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.format.metric import SAMPLED_CPU_TIME_NS
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.windows import Window, WindowKind
from deepcontext.profiler.summaries.late_places import late_places
from deepcontext.ui.report.machine import report_to_dict
from deepcontext.ui.report.text import render_report

if TYPE_CHECKING:
    from deepcontext.analyzers import Finding
    from deepcontext.profiler.model.profile import Profile
    from tests.conftest import MakeProfile

ROOT = Path(__file__).resolve().parents[2]
MS = 1_000_000
STEPS = 100
RANKS = 4
STEP = (FrameKind.PYTHON, "step", "/home/me/train.py", 20)
LATE = (FrameKind.PYTHON, "read_shard", "/home/me/data.py", 7)


def job(
    make_profile: MakeProfile,
    delays_ms: list[dict[int, int]],
    *,
    are_apart: bool = True,
    called: int = 0,
    importing_ms: int = 0,
) -> Profile:
    """Return a job of 10 s; each step has delays by rank, and the others wait in a collective of 1 ms."""
    parts = {}
    for rank in range(RANKS):
        profile = make_profile(
            [0, 0, 1, 2, 1, 4],
            [
                Frame(FrameKind.ROOT, ""),
                Frame(FrameKind.THREAD, "MainThread"),
                Frame(*STEP),
                Frame(*LATE),
                Frame(FrameKind.PYTHON, "<module>", "/home/me/train.py", 1),
                Frame(FrameKind.PYTHON, "<module>", "/usr/lib/site-packages/torch/__init__.py", 1),
            ],
        )
        sampled = MetricRows(
            SAMPLED_CPU_TIME_NS,
            np.array([2, 5], np.uint32),
            np.ones(2, np.uint64),
            np.array([10_000 - importing_ms, importing_ms], np.int64) * MS,
        )
        profile = dataclasses.replace(
            profile, metrics={**profile.metrics, SAMPLED_CPU_TIME_NS.name: sampled}
        )
        run = dataclasses.replace(profile.run, rank=rank, ranks=RANKS, wall_ns=10_000 * MS)
        rows = [
            (
                0,
                step,
                step,
                0,
                MS * (1 + max(late.values(), default=0) - late.get(rank, 0)),
                MS * (5 + late.get(rank, 0)),
                0,
                -1,
            )
            for step, late in enumerate(delays_ms)
        ]
        samples = [
            (step, place, 4, MS * time)
            for step, late in enumerate(delays_ms)
            for place, time in enumerate((late.get(rank, 0), 5))
            if time
        ]
        payload = rank_collectives.encode({
            "groups": [["0", list(range(RANKS)), called or len(rows)]],
            "are_apart": are_apart,
            "ended": len(rows),
            "unmatched": 0,
            "unknown": 0,
            "operations": ["allreduce_"],
            "rows": rows,
            "places": [[list(STEP), list(LATE)], [list(STEP)]],
            "samples": samples,
        })
        parts[str(rank)] = dataclasses.replace(profile, run=run).with_section(
            rank_collectives.SECTION, payload
        )
    return merge(parts)


def findings(profile: Profile) -> tuple[Finding, ...]:
    return run_analyzers(profile, only=["straggler"])


def test_a_rank_that_is_always_late_is_named(make_profile: MakeProfile) -> None:
    profile = job(make_profile, [{2: 40}] * STEPS)
    (found,) = findings(profile)
    assert found.title.startswith(
        "rank 2 comes last to collectives again and again, waiting at /home/me/data.py:7 (read_shard),"
    )
    assert "40%" in found.title
    assert (found.evidence["rank"], found.evidence["caused_ns"]) == (2, 4_000 * MS)
    assert [profile.frame(node).line for node in found.nodes] == [7]
    assert found.gain is not None
    assert found.gain.upper_bound == RANKS * 4_000 * MS
    assert found.gain.run_share == pytest.approx(0.4)


def test_a_rank_that_is_rarely_late_is_named(make_profile: MakeProfile) -> None:
    delays = [{1: 400} if step % 25 == 24 else {} for step in range(STEPS)]
    (found,) = findings(job(make_profile, delays))
    assert found.title.startswith("rank 1 comes last to collectives rarely")
    assert found.evidence["longest_ns"] == 400 * MS


@pytest.mark.parametrize(("importing_ms", "count"), [(0, 0), (9_000, 1)])
def test_a_job_that_mostly_imports_is_judged_by_the_rest(
    make_profile: MakeProfile, importing_ms: int, count: int
) -> None:
    profile = job(make_profile, [{2: 20}] * 20, importing_ms=importing_ms)
    assert len(findings(profile)) == count  # 0.4 of 10 s, 0.4 of 1 s


def test_ranks_that_are_late_in_turn_are_told_as_one(make_profile: MakeProfile) -> None:
    (found,) = findings(job(make_profile, [{step % RANKS: 40} for step in range(STEPS)]))
    assert "in turn, waiting at /home/me/data.py:7" in found.title
    assert "rank" not in found.evidence
    assert found.evidence["caused_ns"] == 4_000 * MS
    assert len(found.nodes) == 1


def test_chance_among_few_collectives_names_no_rank(make_profile: MakeProfile) -> None:
    """Of ranks that are late in turn, rank 2 was last in most of the few that were compared."""
    delays = [{rank: 40} for rank in (2, 0, 2, 1, 2, 3, 2, 1)]
    (found,) = findings(job(make_profile, delays, called=STEPS))
    assert "in turn" in found.title
    (found,) = findings(job(make_profile, [{2: 40}] * 8, called=STEPS))
    assert found.evidence["rank"] == 2


def test_two_late_ranks_are_both_named(make_profile: MakeProfile) -> None:
    delays = [{0: 40, 1: 41} if step % 2 else {0: 41, 1: 40} for step in range(STEPS)]
    titles = [found.title[:6] for found in findings(job(make_profile, delays))]
    assert sorted(titles) == ["rank 0", "rank 1"]


@pytest.mark.parametrize("late_ms", [0, 9])
def test_even_ranks_and_small_delays_give_no_finding(
    make_profile: MakeProfile, late_ms: int
) -> None:
    delays = [{step % RANKS: late_ms} if late_ms else {} for step in range(STEPS)]
    assert findings(job(make_profile, delays)) == ()


def test_the_line_is_the_one_that_takes_the_late_rank_longer(make_profile: MakeProfile) -> None:
    """Both lines have samples before every collective; only one has more of them on the late rank."""
    profile = job(make_profile, [{2: 40}] * STEPS)
    (place,) = late_places(profile, 2)
    assert place.frame == Frame(*LATE)
    assert (place.doing, place.excess_ns, place.share) == ("waiting", 4_000 * MS, 1.0)
    assert late_places(profile, 0) == ()


def test_nobody_is_late_in_the_set_up_of_a_job(make_profile: MakeProfile) -> None:
    setup = Window(0, WindowKind.SETUP, 1, 1, 0, 10_000 * MS)
    profile = dataclasses.replace(job(make_profile, [{2: 40}] * STEPS), of_windows=(setup,))
    assert list(question.find(profile)) == []


def test_the_report_and_its_json_have_the_line(make_profile: MakeProfile) -> None:
    profile = job(make_profile, [{2: 40}] * STEPS)
    ranks: Any = report_to_dict(profile, limit=5)["ranks"]
    (place,) = ranks["late"]["rows"][2]["places"]
    assert ranks["late"]["rows"][0]["places"] == []
    assert (place["line"], place["function"], place["excess_ns"]) == (7, "read_shard", 4_000 * MS)
    text = (ROOT / "docs" / "reference" / "report-json.md").read_text("utf-8")
    documented = re.findall(r"^\| `ranks\.late\.rows\.places\.(\w+)` \|", text, re.MULTILINE)
    assert list(place) == documented
    stream = io.StringIO()
    render_report(profile, console=Console(file=stream, width=160), full=True)
    row = r"^ +2 +4\.00 s .* waiting +100 % +█{20} +.*data\.py:7"
    assert re.search(row, stream.getvalue(), re.MULTILINE)
    assert re.search(r"^ +100 ms +3\.00 s +100 +4 +rank 2, 100% +allreduce in group 0 of ranks 0 to 3$",
                     stream.getvalue(), re.MULTILINE)  # fmt: skip


def test_ranks_that_are_rarely_late_are_seen_over_the_run(make_profile: MakeProfile) -> None:
    delays = [{1: 400} if step % 25 == 24 else {} for step in range(STEPS)]
    stream = io.StringIO()
    profile = job(make_profile, delays)
    render_report(profile, console=Console(file=stream, width=160), full=True)
    (row,) = re.findall(r"^ +1 +1\.60 s.*waiting +100 % (.*)/home", stream.getvalue(), re.MULTILINE)
    assert row.strip(" ") == "    ".join("█" * 4)


def test_what_cannot_be_compared_gives_no_finding(make_profile: MakeProfile) -> None:
    assert findings(job(make_profile, [{2: 40}] * STEPS, are_apart=False)) == ()
