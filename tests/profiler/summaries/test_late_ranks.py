"""Who comes last to collectives, from durations alone."""

from __future__ import annotations

import dataclasses
import statistics
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import rank_collectives
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.job.artifact import profile_of, read_part
from deepcontext.profiler.model.job.fold import merge
from deepcontext.profiler.model.job.joining import join
from deepcontext.profiler.model.job.part import part_of
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.communication import by_operation
from deepcontext.profiler.summaries.late_ranks import LateRanks, by_lateness
from deepcontext.profiler.summaries.rank_collectives import compare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.conftest import MakeProfile

    # number, duration, own time; a fourth element says of which group, a fifth the bytes, a sixth the
    # exposed time; as they are called
    Rows = Sequence[tuple[int, ...]]

ALL = ("0", None)  # None: every rank


def job(
    make_profile: MakeProfile,
    *ranks: Rows,
    groups: Sequence[tuple[str, Sequence[int] | None]] = (ALL,),
    called: int = 0,
    content: Mapping[str, Any] | None = None,
    section: str = rank_collectives.SECTION,
) -> Profile:
    """Return a merged profile of ranks with these collectives."""
    return merge(
        parts_of(
            make_profile, *ranks, groups=groups, called=called, content=content, section=section
        )
    )


def parts_of(
    make_profile: MakeProfile,
    *ranks: Rows,
    groups: Sequence[tuple[str, Sequence[int] | None]] = (ALL,),
    called: int = 0,
    content: Mapping[str, Any] | None = None,
    section: str = rank_collectives.SECTION,
) -> dict[str, Profile]:
    """Return the profiles of ranks with these collectives."""
    parts = {}
    for rank, rows in enumerate(ranks):
        profile = make_profile([0], [Frame(FrameKind.ROOT, "")])
        run = dataclasses.replace(profile.run, rank=rank, ranks=len(ranks))
        table = [
            (
                (row[3:] or (0,))[0],
                row[0],
                n,
                0,
                *row[1:3],
                (row[4:] or (0,))[0],
                (row[5:] or (-1,))[0],
            )
            for n, row in enumerate(rows)
        ]
        counts = [called or sum(row[0] == index for row in table) for index in range(len(groups))]
        known = [
            [name, list(range(len(ranks)) if members is None else members), count]
            for (name, members), count in zip(groups, counts, strict=True)
            if members is None or rank in members
        ]
        of_rank = [index for index, (_, who) in enumerate(groups) if who is None or rank in who]
        table = [(of_rank.index(row[0]), *row[1:]) for row in table]
        found = {
            "groups": known,
            "are_apart": True,
            "ended": len(rows),
            "unmatched": 0,
            "unknown": 0,
            "operations": ["allreduce_"],
            "rows": table,
            "places": [],
            "samples": [],
            **(content or {}),
        }
        profile = dataclasses.replace(profile, run=run)
        payload = rank_collectives.encode(found)
        parts[str(rank)] = profile.with_section(section, payload)
    return parts


def lateness(profile: Profile) -> LateRanks:
    found = by_lateness(profile)
    assert found is not None
    return found


def test_each_delay_is_charged_to_the_last(make_profile: MakeProfile) -> None:
    # Rank 0 is late once, rank 2 once; rows of a rank are in any order.
    profile = job(
        make_profile,
        [(0, 10, 305), (1, 70, 5)],
        [(1, 60, 5), (0, 110, 5)],
        [(0, 310, 5), (1, 20, 55)],
    )
    found = lateness(profile)
    assert (found.collectives, found.compared, found.reason) == (2, 2, "")
    assert [row.caused_ns for row in found.rows] == [200, 0, 45]
    assert [row.longest_ns for row in found.rows] == [200, 0, 45]
    assert [row.waiting_ns for row in found.rows] == [50, 140, 300]
    assert [row.total_ns for row in found.rows] == [80, 170, 330]


def test_collectives_in_flight_together_share_one_delay(make_profile: MakeProfile) -> None:
    late = [(0, 1, 103), (1, 1, 34), (2, 1, 60)]
    waits = [(0, 101, 3), (1, 131, 4), (2, 51, 5)]
    found = lateness(job(make_profile, late, waits))
    assert [row.caused_ns for row in found.rows] == [100 + 30 + 50, 0]


MESH = [("1", (0, 1)), ("2", (2, 3)), ("3", (0, 2)), ("4", (1, 3))]


def test_who_is_late_because_it_waited_has_caused_nothing(make_profile: MakeProfile) -> None:
    """Of a 2 x 2 mesh, rank 0 is late in its row, and so its neighbour is late in its column."""
    profile = job(
        make_profile,
        [(0, 1, 45, 0), (0, 1, 47, 2)],
        [(0, 41, 5, 0), (0, 1, 7, 3)],
        [(0, 1, 5, 1), (0, 41, 7, 2)],
        [(0, 1, 5, 1), (0, 41, 7, 3)],
        groups=MESH,
    )
    found = lateness(profile)
    assert (found.groups, found.collectives, found.groups_left_out) == (4, 4, 0)
    assert [row.caused_ns for row in found.rows] == [40, 0, 0, 0]
    assert [row.waiting_ns for row in found.rows] == [0, 40, 40, 40]


def test_a_late_row_is_charged_in_its_columns(make_profile: MakeProfile) -> None:
    """Nobody waits in the row of two ranks that are late alike; the others wait in the columns."""
    profile = job(
        make_profile,
        [(0, 1, 45, 0), (0, 1, 47, 2)],
        [(0, 1, 45, 0), (0, 1, 47, 3)],
        [(0, 1, 5, 1), (0, 41, 7, 2)],
        [(0, 1, 5, 1), (0, 41, 7, 3)],
        groups=MESH,
    )
    assert [row.caused_ns for row in lateness(profile).rows] == [40, 40, 0, 0]


def test_ranks_that_come_last_together_share_what_they_cause(make_profile: MakeProfile) -> None:
    waits = [(0, 41, 5)]
    found = lateness(job(make_profile, [(0, 1, 45)], [(0, 6, 40)], waits, waits))
    assert [row.caused_ns for row in found.rows] == [20, 20, 0, 0]


def test_delays_are_told_over_the_run(make_profile: MakeProfile) -> None:
    late = [(n, 1, 45 if n >= 30 else 5) for n in range(40)]
    waits = [(n, 41 if n >= 30 else 1, 5) for n in range(40)]
    found = lateness(job(make_profile, late, waits))
    assert found.rows[0].over_time_ns == (0,) * 15 + (80,) * 5
    assert found.rows[1].over_time_ns == (0,) * 20


def test_what_is_exchanged_is_told_by_operation_and_group(make_profile: MakeProfile) -> None:
    profile = job(
        make_profile,
        [(0, 1, 45, 0), (0, 2, 47, 2)],
        [(0, 41, 5, 0), (0, 1, 7, 3)],
        [(0, 1, 5, 1), (0, 42, 7, 2)],
        [(0, 1, 5, 1), (0, 41, 7, 3)],
        groups=MESH,
    )
    rows = by_operation(profile)
    assert [(row.operation, row.group, row.members, row.calls) for row in rows] == [
        ("allreduce", "3", (0, 2), 1),
        ("allreduce", "1", (0, 1), 1),
        ("allreduce", "4", (1, 3), 1),
        ("allreduce", "2", (2, 3), 1),
    ]
    assert [(row.transfer_ns, row.waiting_ns) for row in rows] == [
        (2, 20),
        (1, 20),
        (1, 20),
        (1, 0),
    ]
    assert (rows[0].last, rows[0].last_share) == (0, 1.0)


def test_bandwidths_are_told_by_size(make_profile: MakeProfile) -> None:
    """Sizes are known of the last calls only; these stand for the others of their operation."""
    sizes = [0, 0, 4096, 3000, 9000, 5000]
    late = [(n, 100, 45, 0, size) for n, size in enumerate(sizes)]
    waits = [(n, 500, 5, 0, size) for n, size in enumerate(sizes)]
    rows = by_operation(job(make_profile, late, waits, waits, waits))
    assert [(row.size_bytes, row.calls) for row in rows] == [(3548, 3), (5000, 2), (9000, 2)]
    assert sum(row.transfer_ns for row in rows) == 600
    fastest = rows[-1]
    assert fastest.bytes_per_s == pytest.approx(90e9)
    assert fastest.bus_bytes_per_s == pytest.approx(2 * 3 / 4 * 90e9)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("allreduce_", 1.5),
        ("all-reduce", 1.5),
        ("_allgather_base_", 0.75),
        ("all-gather", 0.75),
        ("_reduce_scatter_base_", 0.75),
        ("alltoall_base_", 0.75),
        ("barrier", 1.0),
    ],
)
def test_the_bus_bandwidth_is_that_of_nccl_tests(
    make_profile: MakeProfile, operation: str, factor: float
) -> None:
    rows = [(0, 100, 0, 0, 1000)]
    profile = job(make_profile, rows, rows, rows, rows, content={"operations": [operation]})
    (row,) = by_operation(profile)
    assert row.bus_bytes_per_s == pytest.approx(factor * row.bytes_per_s)


def test_profiles_without_bytes_are_still_compared(make_profile: MakeProfile) -> None:
    old = {"version": 2, "rows": [[0, 0, 0, 0, 10, 5]]}
    profile = job(make_profile, [(0, 10, 5)], [(0, 10, 5)], content=old)
    (row,) = by_operation(profile)
    assert (row.size_bytes, row.bytes_per_s, row.transfer_ns) == (0, 0.0, 10)


def test_profiles_without_exposed_time_are_still_compared(make_profile: MakeProfile) -> None:
    old = {"version": 3, "rows": [[0, 0, 0, 0, 10, 5, 64]]}
    (row,) = by_operation(job(make_profile, [(0, 1, 1)], [(0, 1, 1)], content=old))
    assert (row.size_bytes, row.exposed_share) == (64, -1)


def test_what_was_waited_for_is_exposed(make_profile: MakeProfile) -> None:
    """A sample may stand for more than a short collective lasted: sums count."""
    first = [(0, 100, 1, 0, 64, 250), (1, 100, 1, 0, 64, 0), (2, 200, 1, 0, 64, 0)]
    second = [(0, 100, 1, 0, 64, -1), (1, 100, 1, 0, 64, 50), (2, 300, 1, 0, 64, 0)]
    (row,) = by_operation(job(make_profile, first, second))
    assert row.exposed_share == pytest.approx(300 / 800)
    (unknown,) = by_operation(job(make_profile, [(0, 1, 1)], [(0, 1, 1)]))
    assert unknown.exposed_share == -1


# -- joined ranks


def joined_in_parts(profiles: Mapping[str, Profile], *, size: int = 1) -> Profile:
    """Join ranks, so many at a time, through files."""
    parts = [part_of(profile, int(rank)) for rank, profile in profiles.items()]
    while len(parts) > 1:
        parts = [join(parts[at : at + size]) for at in range(0, len(parts), size)]
        parts = [read_part(Profile.from_bytes(profile_of(part).to_bytes())) for part in parts]
    return profile_of(parts[0])


def long_run(rank: int, *, late: int = 1) -> list[tuple[int, ...]]:
    """Return 1,024 collectives, to each of which one rank comes 20 us late."""
    return [(n, 10_000, 30_000) if rank == late else (n, 30_000, 10_000) for n in range(1024)]


def test_delays_do_not_depend_on_the_parts_that_are_joined(make_profile: MakeProfile) -> None:
    parts = parts_of(make_profile, *(long_run(rank) for rank in range(4)))
    joined = joined_in_parts(parts, size=2)
    assert by_lateness(joined) == by_lateness(merge(parts))
    assert by_operation(joined) == by_operation(merge(parts))


@pytest.mark.long
def test_of_many_joined_ranks_the_same_numbers_stay_in_any_order(make_profile: MakeProfile) -> None:
    parts = parts_of(make_profile, *(long_run(rank, late=70) for rank in range(160)))
    joined = joined_in_parts(parts, size=160)
    found = lateness(joined)
    assert found.collectives == 1024
    assert 256 <= found.compared <= 65_536 // 160  # of each rank
    assert found.rows[70].caused_ns == pytest.approx(1024 * 20_000, rel=0.01)
    assert all(row.caused_ns == 0 for row in found.rows if row.rank != 70)
    name = f"joined_{rank_collectives.SECTION}"
    turned = joined_in_parts(dict(reversed(parts.items())), size=7)
    assert turned.sections[name] == joined.sections[name]
    assert len(joined.sections[name]) < 1_000_000


@pytest.mark.long
def test_places_of_joined_ranks_are_those_of_what_stays(make_profile: MakeProfile) -> None:
    places = [[[2, "main", "/home/me/train.py", line]] for line in range(1024)]
    samples = [[order, order, 2, 1_000] for order in range(1024)]
    content = {"places": places, "samples": samples}
    parts = parts_of(make_profile, *(long_run(rank) for rank in range(160)), content=content)
    compared = rank_collectives_of(joined_in_parts(parts, size=160))
    for order, found in compared.samples[0].items():
        (sample,) = found
        assert sample.path[0][3] == order
    assert set(compared.order[0].tolist()) == set(compared.samples[0])


def rank_collectives_of(profile: Profile) -> Any:
    (group,) = compare(profile).groups
    return group


def test_collectives_of_jitted_functions_are_compared(make_profile: MakeProfile) -> None:
    profile = job(
        make_profile,
        [(0, 10, 305), (1, 70, 5)],
        [(0, 310, 5), (1, 20, 55)],
        groups=[("jit(step)", None)],
        content={"operations": ["all-reduce"], "left_out": 1},
        section=rank_collectives.JAX_SECTION,
    )
    found = lateness(profile)
    assert [row.caused_ns for row in found.rows] == [300, 50]
    assert (found.groups, found.groups_left_out) == (1, 1)
    (row,) = by_operation(profile)
    assert (row.group, row.is_function, row.operation) == ("jit(step)", True, "all-reduce")


def test_a_group_whose_members_disagree_is_left_out(make_profile: MakeProfile) -> None:
    groups = [ALL, ("1", (0, 1))]
    rows = [(0, 10, 5), (0, 10, 5, 1)]
    found = lateness(job(make_profile, [*rows, (1, 10, 5, 1)], rows, groups=groups))
    assert (found.groups, found.groups_left_out, found.collectives) == (1, 1, 1)


def test_sums_are_scaled_where_some_were_compared(make_profile: MakeProfile) -> None:
    found = lateness(
        job(make_profile, [(0, 10, 0), (7, 10, 100)], [(7, 110, 0), (9, 1, 0)], called=20)
    )
    assert (found.collectives, found.compared) == (20, 1)
    assert [row.caused_ns for row in found.rows] == [2000, 0]
    assert found.rows[0].longest_ns == 100


def test_sums_of_few_collectives_have_an_error(make_profile: MakeProfile) -> None:
    """Of 100 collectives, 8 were compared; a rank that is late in each is known to be."""
    late = [(n, 1, 45) for n in range(8)]
    waits = [(n, 41, 5) for n in range(8)]
    always = lateness(job(make_profile, late, waits, called=100))
    assert [row.error_ns for row in always.rows] == [0, 0]
    turns = [(late[n], waits[n]) if n % 2 else (waits[n], late[n]) for n in range(8)]
    in_turn = lateness(
        job(make_profile, [turn[0] for turn in turns], [turn[1] for turn in turns], called=100)
    )
    error = 100 * statistics.stdev([40, 0] * 4) / 8**0.5 * 0.92**0.5
    assert [row.error_ns for row in in_turn.rows] == [round(error)] * 2
    assert lateness(job(make_profile, late, waits)).rows[0].error_ns == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"are_apart": False}, "several process groups"),
        ({"unknown": 1}, "groups of collectives could not be read"),
        ({"unmatched": 1}, "could not be matched"),
        ({"groups": [["", [], 1]]}, "groups of collectives could not be read"),
        ({"groups": [["0", [0, 1], 1], ["0", [0, 1], 0]]}, "groups of collectives could not"),
    ],
)
def test_what_cannot_be_compared_is_told(
    make_profile: MakeProfile, content: dict[str, Any], words: str
) -> None:
    rows = [(0, 10, 0)]
    found = lateness(job(make_profile, rows, rows, content=content))
    assert words in found.reason
    assert not found.rows


def test_ranks_that_counted_differently_are_told(make_profile: MakeProfile) -> None:
    rows = [(0, 10, 0)]
    found = lateness(job(make_profile, rows, [*rows, (1, 10, 0)]))
    assert "different collectives" in found.reason
    assert not found.rows


def test_nothing_is_told_without_several_ranks(make_profile: MakeProfile) -> None:
    assert by_lateness(make_profile([0], [Frame(FrameKind.ROOT, "")])) is None


@pytest.mark.parametrize(
    "payload",
    [b"[]", b"{", b"{}", b'{"ranks": {"0": {}, "1": {}}}', b'{"ranks": {"x": {}}}'],
)
def test_a_damaged_section_is_an_error(make_profile: MakeProfile, payload: bytes) -> None:
    rows = [(0, 10, 0)]
    name, packed = f"joined_{rank_collectives.SECTION}", zlib.compress(payload)
    profile = job(make_profile, rows, rows).with_section(name, packed)
    with pytest.raises(ProfileDataError, match="'joined_collectives' is damaged"):
        by_lateness(profile)
