"""The ranks as the page shows them: the figures of the report, values by rank, and reasons for gaps."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.format.frame import Frame, FrameKind, Phase
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.columns import decode
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.summaries import ranks as rank_summary
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import by_lateness
from deepcontext.ui.format import format_bytes, format_ns
from deepcontext.ui.web.about import about
from deepcontext.ui.web.app import ViewSettings, create_app
from deepcontext.ui.web.one_file import page_data
from deepcontext.ui.web.open_profiles import OpenProfile, OpenProfiles
from deepcontext.ui.web.ranks import packed_ranks, ranks_answer
from tests.profiler.summaries.test_late_ranks import job
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deepcontext.profiler.model.profile import Profile
    from deepcontext.ui.web.answers import TableAnswer
    from tests.conftest import MakeProfile


def made_ranks(count: int, nodes: int = 200) -> list[Profile]:
    """Return ranks with equal trees and different costs."""
    made, found = random_profile(nodes, seed=3), []
    for rank in range(count):
        random = np.random.default_rng(rank)
        rows = {
            name: dataclasses.replace(
                each, total=(each.total * random.uniform(0.5, 1.5, len(each.total))).astype(int)
            )
            for name, each in made.stored_metrics().items()
        }
        run = dataclasses.replace(
            made.run, rank=rank, ranks=count, pid=10 + rank, hostname=f"node{rank // 8}"
        )
        found.append(dataclasses.replace(made, metrics=rows, run=run))
    return found


def joined(ranks: list[Profile]) -> Profile:
    return merge({str(rank): profile for rank, profile in enumerate(ranks)})


def unpacked(packed: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of a container."""
    content = gzip.decompress(packed)
    size = int.from_bytes(content[:4], "little")
    described = json.loads(content[4 : 4 + size])
    body, arrays = content[4 + size :], {}
    types = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "i64": "<i8"}
    for name, each in described["arrays"].items():
        kind = np.dtype(types[each["type"]])
        planes = np.frombuffer(body, np.uint8, each["length"] * kind.itemsize, each["at"])
        rows = np.ascontiguousarray(planes.reshape(kind.itemsize, -1).T)
        arrays[name] = rows.view(kind).ravel()
    return described["header"], arrays


def shown(table: TableAnswer) -> list[dict[str, Any]]:
    headings = [each.heading for each in table.columns]
    return [dict(zip(headings, row, strict=True)) for row in table.rows]


def test_times_are_those_of_the_report_and_parts_add_up() -> None:
    profile = joined(made_ranks(3))
    answer = ranks_answer(profile)
    rows = rank_summary.by_rank(profile)
    assert [row.rank for row in answer.rows] == [0, 1, 2]
    for row, drawn, times in zip(rows, answer.rows, shown(answer.times), strict=True):
        assert times["operators"] == format_ns(row.operator_ns)
        assert sum(drawn.parts_ns) == row.operator_ns + row.running_ns + row.waiting_ns
        assert min(drawn.parts_ns) >= 0
    assert len(answer.parts) == 4
    expected = rank_summary.uneven_lines(profile, 10)
    assert [row[0] for row in answer.lines.rows] == [
        pytest.approx([value / max(each.by_rank) for value in each.by_rank]) for each in expected
    ]


def test_loading_data_is_a_part_of_its_own(make_profile: MakeProfile) -> None:
    frames = [
        Frame(FrameKind.ROOT, ""),
        Frame(FrameKind.OPERATOR, "aten::add"),
        Frame(FrameKind.OPERATOR, "aten::stack"),
    ]
    ranks = []
    for rank in range(2):
        made = make_profile([0, 0, 0], frames, host_time_ns={1: 700, 2: 300 + rank})
        phase = np.array([Phase.NONE, Phase.FORWARD, Phase.DATA_LOADING], np.uint8)
        tree = dataclasses.replace(made.tree, phase=phase)
        run = dataclasses.replace(made.run, rank=rank, ranks=2)
        ranks.append(dataclasses.replace(made, tree=tree, run=run))
    answer = ranks_answer(joined(ranks))
    assert [row.parts_ns for row in answer.rows] == [[700, 0, 0, 300], [700, 0, 0, 301]]
    assert [row["operators"] for row in shown(answer.times)] == ["1.00 us", "1.00 us"]


def test_many_ranks_are_the_slowest_typical_ones_and_a_histogram() -> None:
    ranks = made_ranks(70, 40)
    profile = joined(ranks)
    answer = ranks_answer(profile)
    ordered = rank_summary.slowest(rank_summary.by_rank(profile))
    names = [row.name for row in answer.rows]
    assert names == ["slowest"] * 10 + ["typical"] * 10 + ["least", "median", "most"]
    assert [row.rank for row in answer.rows[:10]] == [row.rank for row in ordered[:10]]
    assert [row.rank for row in answer.rows[10:20]] == [row.rank for row in ordered[30:40]]
    work = [rank_summary.working_ns(row) for row in ordered]
    times = shown(answer.times)
    assert times[-1]["working"] == format_ns(work[0])
    assert times[-3]["working"] == format_ns(work[-1])
    assert answer.bins is not None
    assert sum(answer.bins.bins) == 70
    assert (answer.bins.least_ns, answer.bins.most_ns) == (work[-1], work[0])
    assert [name.host for name in answer.names[:9]] == ["node0"] * 8 + ["node1"]


@pytest.mark.parametrize(
    ("count", "fact"), [(1, "1 on 1 host, 10.0 s elapsed"), (9, "9 on 2 hosts, 10.0 s elapsed")]
)
def test_the_head_counts_ranks_and_hosts(count: int, fact: str) -> None:
    answer = ranks_answer(joined(made_ranks(count)))
    assert answer.fact == fact
    assert ("only one rank" in answer.late.note) == (count == 1)


def test_few_joined_ranks_are_listed_each() -> None:
    answer = ranks_answer(joined(made_ranks(4)))
    assert [row.rank for row in answer.rows] == [0, 1, 2, 3]
    assert answer.bins is None
    assert "no rank recorded single collectives" in answer.late.note
    assert answer.exchanges.note == answer.late.note


def test_kept_values_add_up_to_those_of_each_rank() -> None:
    ranks = made_ranks(5)
    profile = joined(ranks)
    header, arrays = unpacked(packed_ranks(profile, level=1))
    metric = header["metrics"].index("host_time_ns")
    codes = arrays[f"{metric}.codes"].reshape(len(arrays["node"]), 5).astype(np.uint16)
    sums = decode(codes).sum(axis=0)
    expected = [int(each.exclusive("host_time_ns").sum()) for each in ranks]
    np.testing.assert_allclose(sums, expected, rtol=2e-3)
    spread = sections.spreads_of(profile)["host_time_ns"]
    for name in ("node", "total", "most", "most_rank"):
        np.testing.assert_array_equal(arrays[f"{metric}.{name}"], getattr(spread, name))


def test_late_ranks_and_communication_are_those_of_the_report(make_profile: MakeProfile) -> None:
    rows = [
        [(n, 1000 + 400 * (rank == 0), 100 * rank, 0, 4096) for n in range(40)] for rank in (0, 1)
    ]
    profile = job(make_profile, *rows)
    answer = ranks_answer(profile)
    found = by_lateness(profile)
    assert found is not None
    over_time = [(row.rank, tuple(row.over_time_ns)) for row in answer.late_over_time]
    assert over_time == [(row.rank, row.over_time_ns) for row in found.rows]
    late = shown(answer.late)
    assert [row["rank"] for row in late] == ["1", "0"]
    assert late[0]["made others wait"] == format_ns(found.rows[1].caused_ns)
    assert late[1]["waited"] == format_ns(found.rows[0].waiting_ns)
    assert answer.late.note.startswith("from all 40 collectives; ")
    (exchange,) = shown(answer.exchanges)
    (expected,) = by_operation(profile)
    assert exchange["bytes"] == format_bytes(40 * 4096)
    assert exchange["transfer"] == format_ns(expected.transfer_ns)
    assert str(exchange["operation"]).endswith(" in group 0 of ranks 0, 1")
    assert answer.rows[0].waited_ns == found.rows[0].waiting_ns


def test_of_many_ranks_the_latest_are_shown_and_the_others_counted(
    make_profile: MakeProfile,
) -> None:
    count = 100
    # Each collective waits for one rank, the longer the higher its number.
    rows = [
        [
            (n, 1000 + 100 * (n + 1) * (n != rank), 100 * (n + 1) * (n == rank), 0, 4096)
            for n in range(count)
        ]
        for rank in range(count)
    ]
    answer = ranks_answer(job(make_profile, *rows))
    shown_ranks = [row.rank for row in answer.late_over_time]
    assert shown_ranks == list(range(count - 64, count))
    assert [int(row["rank"]) for row in shown(answer.late)] == shown_ranks[::-1]
    assert answer.late.note.endswith(f"64 of {count} ranks are shown, the latest.")


@pytest.mark.parametrize(
    ("content", "reason"),
    [({"unmatched": 1}, "could not be matched"), ({"are_apart": False}, "process groups")],
)
def test_a_job_without_late_ranks_says_why(
    make_profile: MakeProfile, content: Mapping[str, Any], reason: str
) -> None:
    rows = [[(0, 10, 1)], [(0, 20, 1)]]
    answer = ranks_answer(job(make_profile, *rows, content=content))
    assert answer.late.rows == []
    assert answer.late_over_time == []
    assert reason in answer.late.note
    assert reason in answer.exchanges.note


def test_ranks_without_collectives_say_so() -> None:
    answer = ranks_answer(joined(made_ranks(2)))
    assert "no rank recorded single collectives" in answer.late.note


def test_server_and_file_have_the_same_ranks_and_only_merged_profiles_have_them() -> None:
    ranks = made_ranks(2)
    profiles = OpenProfiles([
        OpenProfile.of_memory(ranks[0], "one"),
        OpenProfile.of_memory(joined(ranks), "all"),
    ])
    assert [each.ranks for each in about(profiles).profiles] == [0, 2]
    client = create_app(profiles, ViewSettings("t")).test_client()
    data = page_data(profiles)
    assert len(data) == 5
    assert data[3] == ""
    served = client.get("/t/api/ranks?file=1", headers={"Accept-Encoding": "gzip"})
    assert served.status_code == 200
    assert unpacked(served.data)[0] == unpacked(base64.b64decode(data[4]))[0]


def test_a_damaged_section_is_an_answer_of_both(make_profile: MakeProfile) -> None:
    profile = job(make_profile, [(0, 10, 1)], [(0, 20, 1)])
    damaged = profile.with_section(
        f"joined_{rank_collectives.SECTION}", zlib.compress(b'{"ranks": {"0": {}, "1": {}}}')
    )
    with pytest.raises(ProfileDataError):
        packed_ranks(damaged, level=1)
    profiles = OpenProfiles([OpenProfile.of_memory(damaged, "all")])
    client = create_app(profiles, ViewSettings("t")).test_client()
    assert "damaged" in client.get("/t/api/ranks").get_json()["error"]
    assert "damaged" in unpacked(base64.b64decode(page_data(profiles)[2]))[0]["error"]


def test_packed_sections_of_joined_ranks_are_not_offered_as_data() -> None:
    profile = joined(made_ranks(2)).with_section("findings", b"[]")
    (answer,) = about(OpenProfiles([OpenProfile.of_memory(profile, "all")])).profiles
    assert sections.COLUMNS in profile.sections
    assert answer.sections == ["findings"]
