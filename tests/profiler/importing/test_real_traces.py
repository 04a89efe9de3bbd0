"""What is read of real traces equals an independent count by plain `json`.

The folder is named by DEEPCONTEXT_TRACES; its files are not part of the project.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli.app import main

pytestmark = pytest.mark.traces
FOLDER = Path(os.environ.get("DEEPCONTEXT_TRACES", "/nonexistent"))
FILES = sorted(FOLDER.glob("kineto_*.json*")) or [Path("none")]


@pytest.fixture(params=FILES, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    if not found.exists():
        pytest.skip(
            "set DEEPCONTEXT_TRACES to a folder with traces of torch.profiler (kineto_*.json.gz)"
        )
    return found


def events_of(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rb") as file:
        content = json.load(file)
    return content["traceEvents"] if isinstance(content, dict) else content


def sums(profile: Profile, metric: str, kind: FrameKind) -> tuple[Counter[str], Counter[str]]:
    """Return number and total of a metric by name of the frames of a kind."""
    counts: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    if metric in profile.metrics:
        rows = profile.metrics[metric]
        for node, count, total in zip(
            rows.node.tolist(), rows.count.tolist(), rows.total.tolist(), strict=True
        ):
            frame = profile.frame(node)
            if frame.kind is kind:
                counts[frame.name] += count
                totals[frame.name] += total
    return counts, totals


def test_counts_and_times_equal_an_independent_count(path: Path) -> None:
    events, profile = events_of(path), load(path)
    spans = [event for event in events if event.get("ph") == "X"]
    for category, kind, metric in (
        ("kernel", FrameKind.KERNEL, "gpu_time_ns"),
        ("cpu_op", FrameKind.OPERATOR, "call_duration_ns"),
        ("cuda_runtime", FrameKind.GPU_API, "gpu_api_ns"),
    ):
        mine = [each for each in spans if each.get("cat") == category]
        if category == "cuda_runtime":
            mine += [each for each in spans if each.get("cat") == "cuda_driver"]
        counts, totals = sums(profile, metric, kind)
        assert counts == Counter(each["name"] for each in mine)
        expected: Counter[str] = Counter()
        for each in mine:
            expected[each["name"]] += each["dur"] * 1000
        for name, total in expected.items():
            assert totals[name] == pytest.approx(total, rel=1e-3, abs=1), name
    copies = [each for each in spans if each.get("cat") in {"gpu_memcpy", "gpu_memset"}]
    assert sum(sums(profile, "gpu_time_ns", FrameKind.COPY)[0].values()) == len(copies)
    assert profile.trust.counters["events_read"] == len(events)


def test_launches_that_the_file_links_are_matched(path: Path) -> None:
    events, profile = events_of(path), load(path)
    calls = {
        each["args"].get("correlation")
        for each in events
        if each.get("ph") == "X" and each.get("cat") in {"cuda_runtime", "cuda_driver"}
    }
    device = [
        each
        for each in events
        if each.get("ph") == "X" and each.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    ]
    linked = sum(each["args"].get("correlation") in calls for each in device)
    assert profile.trust.counters["launches_matched"] >= 0.999 * linked
    assert (
        profile.trust.counters["launches_matched"] + profile.trust.counters["launches_unmatched"]
    ) == len(device)


def test_backward_is_below_forward(path: Path) -> None:
    flows = sum(each.get("cat") == "fwdbwd" and each["ph"] == "f" for each in events_of(path))
    counters = load(path).trust.counters
    found, missed = counters["backward_links_found"], counters["backward_links_missed"]
    if flows:
        assert found >= flows
    assert found >= 0.99 * (found + missed)


def test_every_command_reads_it_and_names_the_right_vendor(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = str(tmp_path / "trace.dcprof")
    assert main(["import", str(path), "-o", saved]) == 0
    for command in ("report", "analyze", "explain"):
        assert main([command, saved]) == 0
    assert (
        main(["export", "--format", "perfetto", saved, "-o", str(tmp_path / "trace.pftrace")]) == 0
    )
    text = capsys.readouterr().out
    vendors = {each.name for each in load(saved).trust.collectors} & {"nvidia", "amd"}
    assert len(vendors) == 1
    wrong = "NVIDIA" if vendors == {"amd"} else "AMD"
    assert wrong not in text.replace("idle on AMD GPUs", "")
    for finding in run_analyzers(Profile.load(saved)):
        assert finding.gain is not None
