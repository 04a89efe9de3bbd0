"""Which analyzers run, on which profiles, and what happens if one fails."""

from __future__ import annotations

import dataclasses
import json
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deepcontext.analyzers import (
    ALL,
    Analyzer,
    Finding,
    Gain,
    Severity,
    encode_section,
    load_plugin,
    run_analyzers,
)
from deepcontext.errors import UserError
from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.model.profile import Profile
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeProfile

PLUGIN = """
from deepcontext.analyzers import Analyzer, Finding, Severity

def find(profile):
    return [Finding("mine", Severity.INFO, f"{len(profile.tree)} nodes", (0,))]

ANALYZER = Analyzer("mine", "how many nodes?", find)
"""


def finding(share: float | None, name: str = "x") -> Finding:
    gain = None if share is None else Gain("host_time_ns", 1, share, "it costs nothing")
    return Finding(name, Severity.INFO, name, (0,), gain=gain)


def made(*shares: float | None) -> Analyzer:
    return Analyzer("made", "what?", lambda _: [finding(share) for share in shares])


def test_empty_profile_has_no_findings(make_profile: MakeProfile) -> None:
    profile = make_profile([0], [Frame(FrameKind.ROOT, "root")])
    assert run_analyzers(profile) == ()


def test_profile_without_any_metric_has_no_findings() -> None:
    whole = random_profile(50)
    bare = Profile(whole.frames, whole.tree, {}, whole.run, whole.trust)
    assert run_analyzers(bare) == ()


@pytest.mark.parametrize("nodes", [1, 2, 3, 50, 5000])
@pytest.mark.parametrize("seed", range(3))
def test_any_profile_can_be_analyzed(nodes: int, seed: int) -> None:
    profile = random_profile(nodes, seed=seed)
    for found in run_analyzers(profile):
        assert all(0 <= node < nodes for node in found.nodes)
        assert found.gain is None or 0 <= found.gain.upper_bound_share <= 1
        json.dumps(found.to_dict(profile), allow_nan=False)


@pytest.mark.parametrize("payload", [b"", b"\x00", b"{}", b'{"version": 99, "functions": []}'])
def test_section_of_a_newer_or_broken_collector_is_ignored(payload: bytes) -> None:
    profile = random_profile(100).with_section("jax", payload)
    run_analyzers(profile)


def newer_file(profile: Profile) -> bytes:
    """Return the file that a newer minor version would write: new kinds, phases and fields."""
    kind, phase = profile.frames.kind.copy(), profile.tree.phase.copy()
    kind[-1], phase[-1] = 200, 200
    changed = dataclasses.replace(
        profile,
        frames=dataclasses.replace(profile.frames, kind=kind),
        tree=dataclasses.replace(profile.tree, phase=phase),
    ).to_bytes()
    unknown_field = bytes([0xA2, 0x06, 1, 0])  # field 100, one byte
    start = 21
    body = changed[changed.index(b"\x2a", start) :]
    size = next(n for n in range(1, 10) if body[n] < 128)
    content = body[size + 1 :] + unknown_field
    values = {
        "format": schema.FORMAT,
        "major": schema.MAJOR,
        "minor": schema.MINOR + 7,
        "body_crc32": zlib.crc32(content),
        "body": content,
    }
    return wire.encode("ProfileFile", values)


def test_file_of_a_newer_minor_version_can_be_analyzed() -> None:
    profile = Profile.from_bytes(newer_file(random_profile(3000)))
    assert len(profile.tree) == 3000
    run_analyzers(profile)


def test_profile_without_gpu_can_be_analyzed_by_each_analyzer_alone() -> None:
    whole = random_profile(3000)
    host = {name: rows for name, rows in whole.metrics.items() if "gpu" not in name}
    profile = Profile(whole.frames, whole.tree, host, whole.run, whole.trust)
    for analyzer in ALL:
        run_analyzers(profile, only=[analyzer.id])


def test_location_is_omitted_where_another_analyzer_gives_the_reason() -> None:
    place = Analyzer("place", "where?", lambda _: [finding(0.9, "place")], names_place_only=True)
    profile = random_profile(10)
    alone = run_analyzers(profile, only=["place"], plugins=[place])
    assert [each.id for each in alone] == ["place"]
    both = run_analyzers(profile, only=["place", "made"], plugins=[place, made(0.1)])
    assert [each.id for each in both] == ["x"]


def test_same_profile_gives_the_same_findings() -> None:
    profile = random_profile(3000)
    content = Profile.from_bytes(profile.to_bytes())
    assert run_analyzers(profile) == run_analyzers(content)


def test_largest_gain_comes_first_and_small_ones_are_left_out() -> None:
    profile = random_profile(10)
    plugin = made(0.01, 0.5, None, 0.2)
    found = run_analyzers(profile, only=["made"], plugins=[plugin], min_gain=0.05)
    assert [each.gain.upper_bound_share if each.gain else None for each in found] == [
        0.5,
        0.2,
        None,
    ]


def test_unknown_analyzer_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(UserError, match=r"unknown analyzer 'hotspots'; known: .*hotspot"):
        run_analyzers(random_profile(10), only=["hotspots"])


def test_analyzer_that_fails_is_named() -> None:
    broken = Analyzer("broken", "what?", lambda profile: [profile.nothing])  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="analyzer 'broken' failed: AttributeError"):
        run_analyzers(random_profile(10), plugins=[broken])


def test_plugin_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN, encoding="utf-8")
    (found,) = run_analyzers(random_profile(10), only=["mine"], plugins=load_plugin(path))
    assert found.title == "10 nodes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "failed: ZeroDivisionError"),
        ("", "expected an Analyzer .* found NoneType"),
        ("ANALYZERS = [3]", "found int"),
    ],
)
def test_plugin_without_an_analyzer(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        load_plugin(path)


def test_plugin_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read plug-in"):
        load_plugin(tmp_path / "none.py")


def test_analyzers_of_installed_packages_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_package.py").write_text(PLUGIN, encoding="utf-8")
    metadata = tmp_path / "theirs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: theirs\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(
        "[deepcontext.analyzers]\nmine = their_package:ANALYZER\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [each.title for each in run_analyzers(random_profile(7), only=["mine"])] == ["7 nodes"]


def test_section_holds_what_the_page_reads() -> None:
    profile = random_profile(10)
    content = json.loads(encode_section([finding(0.25)], profile))
    (row,) = content["findings"]
    assert row["id"] == "x"
    assert row["severity"] == "info"
    assert row["gain"]["upper_bound_share"] == 0.25
    assert row["nodes"] == [0]


def test_severity_follows_the_share() -> None:
    shares = np.array([0.0, 0.05, 0.25])
    assert [Severity.of_share(share) for share in shares] == list(Severity)


def test_built_in_analyzers_are_silent_on_random_profiles() -> None:
    assert run_analyzers(random_profile(20_000)) == ()
    assert len(ALL) == 21
