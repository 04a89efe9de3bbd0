"""Reading a damaged profile file gives the profile or one clear error, nothing else."""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.frame import FrameKind, Phase
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.store import reader
from deepcontext.profiler.model.store.column import decode_column
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable

    DecodeAll = Callable[[Profile], None]
    SameProfile = Callable[[Profile, Profile], None]

OFFSET_OR_FIELD = r"^cannot read 'run\.dcprof': .*(offset \d+|[Ff]ield|the file is empty)"


def read(content: bytes) -> Profile:
    return Profile.from_bytes(content, source="run.dcprof")


def test_a_file_cut_at_any_offset_is_refused(small_file: bytes) -> None:
    for size in range(len(small_file)):
        with pytest.raises(ProfileDataError, match=OFFSET_OR_FIELD):
            read(small_file[:size])


def test_a_file_with_any_bit_flipped_is_refused_or_read_unchanged(
    small_file: bytes, small_profile: Profile, assert_same_profile: SameProfile
) -> None:
    accepted = 0
    for place in range(8 * len(small_file)):
        content = bytearray(small_file)
        content[place // 8] ^= 1 << place % 8
        try:
            profile = read(bytes(content))
        except ProfileDataError as error:
            assert str(error).startswith("cannot read 'run.dcprof': ")  # noqa: PT017  may not raise
        else:
            accepted += 1
            assert_same_profile(profile, small_profile)
    # Flips in the minor version (8 bits) change nothing; flips in its tag can name unknown fields.
    assert 0 < accepted < 16


def test_a_body_with_any_byte_inverted_is_refused_or_valid(
    small_file: bytes,
    body_of: Callable[[bytes], Any],
    file_with: Callable[..., bytes],
    decode_all: DecodeAll,
) -> None:
    body = body_of(small_file).SerializeToString()
    refused = 0
    for place in range(len(body)):
        content = bytearray(body)
        content[place] ^= 0xFF
        try:
            decode_all(read(file_with(bytes(content))))
        except ProfileDataError as error:
            refused += 1
            assert "field" in str(error)  # noqa: PT017  may not raise
    assert refused > len(body) / 4


def test_a_body_cut_at_any_offset_is_refused_or_valid(
    small_file: bytes,
    body_of: Callable[[bytes], Any],
    file_with: Callable[..., bytes],
    decode_all: DecodeAll,
) -> None:
    body = body_of(small_file).SerializeToString()
    for size in range(len(body)):
        try:
            decode_all(read(file_with(body[:size])))
        except ProfileDataError as error:
            assert "field" in str(error)  # noqa: PT017  may not raise


def column(type_name: str, *values: float) -> dict[str, Any]:
    types = {"UINT8": "u1", "UINT32": "<u4", "INT32": "<i4", "UINT64": "<u8", "INT64": "<i8"}
    return wire.column(type_name, np.array(values, types.get(type_name, "<f8")).tobytes())


ROOT_KIND = {"kind": column("UINT8", 0), "name": column("UINT32", 0)}
ROOT_FRAME = ROOT_KIND | {"file": column("UINT32", 0), "line": column("UINT32", 0)}
ROOT_NODE = {
    "parent": column("INT32", -1),
    "frame": column("UINT32", 0),
    "phase": column("UINT8", 0),
    "subtree_end": column("INT32", 1),
}
NO_NODES = {
    "parent": column("INT32"),
    "frame": column("UINT32"),
    "phase": column("UINT8"),
    "subtree_end": column("INT32"),
}
ROWS = {"node": column("UINT32", 0), "count": column("UINT64", 1), "total": column("INT64", 5)}
COST = {"name": "cost_ns", "unit": "ns", "aggregation": 1} | ROWS
BODY = {"strings": [""], "frames": ROOT_FRAME, "nodes": ROOT_NODE, "metrics": [COST]}


def framed(body: dict[str, Any], minor: int = schema.MINOR) -> bytes:
    content = wire.encode("ProfileBody", body)
    return wire.encode(
        "ProfileFile",
        {
            "format": schema.FORMAT,
            "major": 1,
            "minor": minor,
            "body_crc32": zlib.crc32(content),
            "body": content,
        },
    )


def test_the_smallest_profile_is_read() -> None:
    profile = read(framed(BODY))
    assert profile.inclusive("cost_ns").tolist() == [5]
    assert profile.metrics["cost_ns"].m2 is None
    assert profile.trust.hook_cost_ns_per_event is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strings": []}, r"field frames\.name: row 0: index 0, but 'strings' has 0 rows"),
        ({"frames": ROOT_FRAME | {"file": column("UINT32", 7)}}, r"frames\.file: row 0: index 7"),
        ({"frames": ROOT_FRAME | {"kind": column("UINT8", 99)}}, r"frames\.kind.*unknown value 99"),
        ({"frames": ROOT_FRAME | {"line": None}}, r"frames: 'line': type 0, expected UINT32"),
        ({"frames": ROOT_FRAME | {"line": column("UINT32", 1, 2)}}, r"'line': 2 rows, expected 1"),
        ({"frames": None}, r"field frames: 'kind': type 0, expected UINT8"),
        ({"nodes": ROOT_NODE | {"frame": column("UINT32", 1)}}, r"nodes\.frame.*'frames' has 1"),
        ({"nodes": ROOT_NODE | {"phase": column("UINT8", 8)}}, r"nodes\.phase.*unknown value 8"),
        ({"nodes": ROOT_NODE | {"parent": column("INT32", 0)}}, r"nodes: 'parent' row 0: "),
        ({"nodes": ROOT_NODE | {"subtree_end": column("INT32", 2)}}, r"nodes: 'subtree_end' row 0"),
        ({"nodes": NO_NODES}, r"nodes: 'parent' row 0: "),
        ({"metrics": [COST, COST]}, r"metrics\['cost_ns'\]: occurs twice"),
        ({"metrics": [COST | {"aggregation": 9}]}, r"aggregation: unknown value 9"),
        ({"metrics": [COST | {"aggregation": None}]}, r"aggregation: unknown value 0"),
        ({"metrics": [COST | {"total": column("FLOAT64", 5)}]}, r"'total': type FLOAT64"),
        ({"metrics": [COST | {"total": None}]}, r"'total': type 0, expected INT64"),
        ({"metrics": [COST | {"m2": column("FLOAT64")}]}, r"'m2': 0 rows, expected 1"),
        ({"metrics": [COST | {"node": column("UINT32", 1)}]}, r"cost_ns'\]\.node: row 0: index 1"),
        (
            {"metrics": [COST | {"node": column("UINT32", 0, 0)}]},
            r"cost_ns'\]\.node: 2 rows for 1 nodes",
        ),
        (
            {"metrics": [COST | {"m2": column("FLOAT64", float("nan"))}]},
            r"m2: row 0: nan, expected a sum of squares",
        ),
        ({"metrics": [COST | {"m2": column("FLOAT64", -1.0)}]}, r"m2: row 0: -1\.0"),
        (
            {"metrics": [COST | {"count": column("UINT64", 2**63 + 7)}]},
            r"cost_ns'\]\.count: 9\.22e\+18 events, expected below 2\*\*62",
        ),
        (
            {"trust": {"collectors": [{"name": "torch", "status": "maybe"}]}},
            r"collectors\['torch'\]\.status: 'maybe' is none of ran",
        ),
        (
            {"trust": {"hook_cost_ns_per_event": float("inf")}},
            r"trust\.hook_cost_ns_per_event: inf, expected a finite number",
        ),
    ],
)
def test_a_body_that_breaks_a_rule_is_refused_by_field(
    change: dict[str, Any], message: str, decode_all: DecodeAll
) -> None:
    with pytest.raises(ProfileDataError, match=message):
        decode_all(read(framed(BODY | change)))


def test_rows_that_do_not_ascend_are_refused() -> None:
    two_nodes = {
        "parent": column("INT32", -1, 0),
        "frame": column("UINT32", 0, 0),
        "phase": column("UINT8", 0, 0),
        "subtree_end": column("INT32", 2, 2),
    }
    rows = {
        "node": column("UINT32", 1, 1),
        "count": column("UINT64", 1, 1),
        "total": column("INT64", 5, 5),
    }
    profile = read(framed(BODY | {"nodes": two_nodes, "metrics": [COST | rows]}))
    with pytest.raises(ProfileDataError, match=r"cost_ns'\]\.node: row 1: ids must ascend"):
        profile.inclusive("cost_ns")


def test_a_body_that_is_not_a_message_is_refused(file_with: Callable[..., bytes]) -> None:
    for body in (b"\xff", b"\x0a\xff", b"\x0a\x02\xff\xfe", b"\x12\x01\x0a"):
        with pytest.raises(ProfileDataError, match="field body: not a ProfileBody message"):
            read(file_with(body))


def test_a_newer_minor_version_may_add_values_and_fields() -> None:
    newer = {
        "frames": ROOT_FRAME | {"kind": column("UINT8", 99)},
        "nodes": ROOT_NODE | {"phase": column("UINT8", 99)},
        "metrics": [COST | {"aggregation": 99}],
        "trust": {"collectors": [{"name": "torch", "status": "maybe"}]},
    }
    content = framed(BODY | newer, minor=schema.MINOR + 1)
    profile = read(content)
    assert profile.frame(0).kind is FrameKind.MARKER
    assert profile.tree.phase.tolist() == [Phase.OTHER]
    assert profile.metrics["cost_ns"].descriptor.aggregation is Aggregation.PROPERTY
    assert profile.trust.collectors[0].status is Status.DEGRADED


def test_unknown_fields_of_the_body_are_ignored(
    small_file: bytes,
    small_profile: Profile,
    body_of: Callable[[bytes], Any],
    file_with: Callable[..., bytes],
    assert_same_profile: SameProfile,
) -> None:
    body = body_of(small_file).SerializeToString() + b"\xfa\x7f\x03new"
    assert_same_profile(read(file_with(body)), small_profile)


def test_metrics_are_decoded_on_first_use(
    small_file: bytes, body_of: Callable[[bytes], Any], file_with: Callable[..., bytes]
) -> None:
    body = body_of(small_file)
    body.metrics[0].total.data = body.metrics[0].total.data[:-1]
    broken, sound = body.metrics[0].name, body.metrics[1].name
    profile = read(file_with(body))
    described = MetricTable.of(profile.metrics).descriptors()
    assert {broken, sound} <= {each.name for each in described}
    assert profile.counts(sound).sum() > 0
    assert profile.metrics[sound] is profile.metrics[sound]
    with pytest.raises(ProfileDataError, match=rf"metrics\['{broken}'\]: 'total': "):
        profile.inclusive(broken)


def test_a_column_of_a_metric_is_decoded_when_it_is_used(
    small_file: bytes, body_of: Callable[[bytes], Any], file_with: Callable[..., bytes]
) -> None:
    body = body_of(small_file)
    name = body.metrics[0].name
    body.metrics[0].count.data = body.metrics[0].count.data[:-1]
    profile, sound = read(file_with(body)), read(small_file)
    assert profile.exclusive(name).tolist() == sound.exclusive(name).tolist()
    with pytest.raises(ProfileDataError, match=rf"metrics\['{name}'\]: 'count': "):
        profile.counts(name)
    rows = sound.metrics[name]
    assert rows.count is rows.count
    with pytest.raises(AttributeError, match="counts"):
        getattr(rows, "counts")  # noqa: B009  checkers refuse it otherwise


def test_large_tables_are_decoded_alike_in_threads(
    small_file: bytes,
    small_profile: Profile,
    body_of: Callable[[bytes], Any],
    file_with: Callable[..., bytes],
    assert_same_profile: SameProfile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: dict[str, threading.Thread] = {}

    def decode(name: str, column: Any) -> Any:
        threads[name] = threading.current_thread()
        return decode_column(name, column)

    monkeypatch.setattr(reader, "_LARGE_TABLE", 0)
    monkeypatch.setattr(reader, "decode_column", decode)
    assert_same_profile(read(small_file), small_profile)
    assert threads["parent"] is not threading.main_thread()
    body = body_of(small_file)
    body.nodes.phase.data = body.nodes.phase.data[:-1]
    with pytest.raises(ProfileDataError, match="field nodes: 'phase': "):
        read(file_with(body))


def test_metrics_of_the_same_nodes_share_one_column() -> None:
    profile = Profile.from_bytes(random_profile(500).to_bytes())
    first, second = (profile.metrics[name] for name in ("host_time_ns", "call_duration_ns"))
    assert first.node is second.node


def test_tables_that_declare_more_than_they_can_hold_are_refused_at_once() -> None:
    huge = {name: {**each, "count": 2**31 - 1} for name, each in ROOT_NODE.items()}
    with pytest.raises(ProfileDataError, match=r"nodes: 'parent': \d+ stored bytes declare"):
        read(framed(BODY | {"nodes": huge}))
    beyond = {name: {**each, "count": 2**40} for name, each in ROOT_NODE.items()}
    with pytest.raises(ProfileDataError, match="nodes: 1099511627776 rows, at most 2147483647"):
        read(framed(BODY | {"nodes": beyond}))
