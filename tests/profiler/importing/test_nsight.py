"""An SQLite export of Nsight Systems becomes a profile: ranges, calls, kernels, copies, graphs, samples."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format.frame import FrameKind
from deepcontext.profiler.importing.opening import load
from deepcontext.ui.cli.app import main

if TYPE_CHECKING:
    from deepcontext.profiler.model.profile import Profile

MS = 1_000_000
HARDWARE = 1 << 48
SECRET = "hunter2-secret"
_TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE ThreadNames (nameId INT, priority INT, globalTid INT);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INT, devStateName TEXT, name TEXT, nameEnum INT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT, systemClockNs INT);
CREATE TABLE TARGET_INFO_GPU (id INT, cuDevice INT, name TEXT, totalMemory INT, smCount INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,
  correlationId INT, nameId INT, returnValue INT, callchainId INT);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT,
  endGlobalTid INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
  globalPid INT, demangledName INT, shortName INT, registersPerThread INT, gridX INT, gridY INT, gridZ INT,
  blockX INT, blockY INT, blockZ INT, staticSharedMemory INT, dynamicSharedMemory INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
  globalPid INT, bytes INT, copyKind INT);
"""
_STRINGS = (
    "cudaLaunchKernel_v7000",
    "gemm(float*)",
    "worker",
    "cudaMemcpyAsync_v3020",
    "spin",
    "/lib/a.so",
)
LAUNCH, GEMM, WORKER, COPY, SPIN, LIBRARY = range(len(_STRINGS))


_EMPTY = """
DELETE FROM NVTX_EVENTS; DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME;
DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY;
"""


def process(pid: int) -> int:
    return HARDWARE + (pid << 24)


def thread(pid: int, tid: int) -> int:
    return process(pid) + tid


def export(path: Path, script: str = "") -> Path:
    """Write an export of two processes that use the same correlation ids."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as made:
        made.executescript(_TABLES)
        made.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(_STRINGS))
        made.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2026.2.1')")
        made.execute("INSERT INTO META_DATA_CAPTURE VALUES ('TOKEN', ?)", (SECRET,))
        made.execute(
            "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, '', 'API_TOKEN', 1, ?)", (SECRET,)
        )
        start = (1_700_000_000 * 10**9, "", "", 5000 * MS)
        made.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, ?, ?, ?)", start)
        made.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H100', 1000, 132)")
        made.execute("INSERT INTO ThreadNames VALUES (?, 20, ?)", (WORKER, thread(10, 11)))
        for pid in (10, 20):
            _fill(made, pid)
        made.executescript(script)
        made.commit()
    return path


def _fill(made: sqlite3.Connection, pid: int) -> None:
    own, at = thread(pid, pid), 6000 * MS
    ranges = [
        (at + 50 * MS, at + 80 * MS, 59, "aten::mm, op_id = 7, sizes = [[2, 2]]", None, own, None),
        (at, at + 100 * MS, 59, "forward", None, own, None),
        (at + 10 * MS, at + 20 * MS, 60, "elsewhere", None, own, thread(pid, 99)),
    ]
    made.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", ranges)
    calls = [
        (at + 60 * MS, at + 62 * MS, 0, own, 1, LAUNCH, 0, None),
        (at + 90 * MS, at + 91 * MS, 0, own, 2, COPY, 0, None),
    ]
    if pid == 10:
        calls.append((at, at + MS, 0, thread(10, 11), 3, COPY, 0, None))
    made.executemany(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?, ?, ?)", calls
    )
    begin = at + (70 if pid == 10 else 65) * MS
    kernel = (begin, begin + 9 * MS, 0 if pid == 10 else 1, 7, 1, process(pid), GEMM, GEMM)
    shape = (32, 2, 3, 1, 128, 1, 1, 512, 512)
    marks = ", ".join("?" * 17)
    made.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({marks})", kernel + shape)
    copy = (at + 95 * MS, at + 99 * MS, 0 if pid == 10 else 1, 7, 2, process(pid), 4096, 1)
    made.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?, ?, ?)", copy)


def paths(profile: Profile, name: str) -> list[str]:
    return [
        " > ".join(frame.name for frame in profile.path(node)[1:])
        for node in range(len(profile.tree))
        if profile.frame(node).name == name
    ]


def test_kernels_are_below_ranges_of_their_own_process(tmp_path: Path) -> None:
    profile = load(export(tmp_path / "report.sqlite"))
    assert sorted(paths(profile, "gemm(float*)")) == [
        "MainThread > forward > aten::mm > gemm(float*)",
        "process 2: MainThread > forward > aten::mm > gemm(float*)",
    ]
    delays = profile.metrics["queue_delay_ns"].total.tolist()
    assert sorted(delays) == [5 * MS, 5 * MS, 5 * MS, 10 * MS]
    assert profile.metrics["grid_block_count"].total.tolist() == [6, 6]
    assert profile.metrics["shared_memory_bytes"].total.tolist() == [1024, 1024]
    assert profile.metrics["copy_bytes"].total.tolist() == [4096, 4096]
    assert profile.trust.counters["launches_matched"] == 4
    assert profile.trust.counters["launches_unmatched"] == 0
    assert paths(profile, "process 1: worker")
    assert profile.run.start_unix_ns == 1_700_000_001 * 10**9


def test_ranges_are_scopes_and_those_of_pytorch_operators(tmp_path: Path) -> None:
    profile = load(export(tmp_path / "report.sqlite"))
    kinds = {frame.name: frame.kind for frame in profile.frames}
    assert kinds["forward"] is FrameKind.SCOPE
    assert kinds["aten::mm"] is FrameKind.OPERATOR
    assert "elsewhere" not in kinds  # a range of two threads is on neither's stack


def test_nothing_of_the_environment_is_copied(tmp_path: Path) -> None:
    saved = tmp_path / "saved.dcprof"
    assert main(["import", str(export(tmp_path / "report.sqlite")), "-o", str(saved)]) == 0
    assert (
        main(["export", "--format", "speedscope", str(saved), "-o", str(tmp_path / "s.json")]) == 0
    )
    content = saved.read_bytes() + (tmp_path / "s.json").read_bytes()
    assert SECRET.encode() not in content
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "report.sqlite",
        "s.json",
        "saved.dcprof",
    ]


def test_absent_tables_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(
        tmp_path / "report.sqlite",
        "DROP TABLE NVTX_EVENTS; DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE ThreadNames;",
    )
    parts = {each.name: each.reason for each in load(path).trust.collectors}
    assert "--trace=nvtx" in parts["nvtx"]
    assert "--trace=cuda" in parts["cuda calls"]
    assert "--sample" in parts["cpu sampling"]
    assert main(["report", "--full", str(path)]) == 0
    assert "Nsight Systems 2026.2.1" in " ".join(capsys.readouterr().out.split())


def test_old_exports_without_processes_and_columns(tmp_path: Path) -> None:
    path = export(
        tmp_path / "report.sqlite",
        """ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN globalPid;
        ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName;
        ALTER TABLE NVTX_EVENTS DROP COLUMN textId;
        ALTER TABLE TARGET_INFO_GPU DROP COLUMN smCount;""",
    )
    profile = load(path)
    assert len(paths(profile, "gemm(float*)")) == 2
    assert profile.trust.counters["launches_unmatched"] == 2


def test_graphs_that_were_traced_as_a_whole(tmp_path: Path) -> None:
    path = export(
        tmp_path / "report.sqlite",
        f"""UPDATE StringIds SET value = 'cudaGraphLaunch_v10000' WHERE id = {LAUNCH};
        DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;
        CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, streamId INT,
          correlationId INT, globalPid INT, graphId INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES
          ({6065 * MS}, {6085 * MS}, 0, 7, 1, {process(10)}, 5);""",
    )
    profile = load(path)
    name = "CUDA graph (kernels not traced)"
    assert paths(profile, name) == [f"MainThread > forward > aten::mm > graph replay > {name}"]
    assert any("--cuda-graph-trace=node" in note for note in profile.trust.notes)


def test_samples_outside_calls_and_ranges(tmp_path: Path) -> None:
    own, at = thread(10, 10), 6000 * MS
    samples = ", ".join(f"({n}, {at + 200 * MS + n * MS}, {own})" for n in range(5))
    stacks = ", ".join(
        f"({n}, {SPIN}, {LIBRARY}, 0), ({n}, {WORKER}, {LIBRARY}, 1)" for n in range(5)
    )
    path = export(
        tmp_path / "report.sqlite",
        f"""CREATE TABLE COMPOSITE_EVENTS (id INT, start INT, globalTid INT);
        CREATE TABLE SAMPLING_CALLCHAINS (id INT, symbol INT, module INT, stackDepth INT);
        INSERT INTO COMPOSITE_EVENTS VALUES {samples}, (9, {at + 52 * MS}, {own});
        INSERT INTO SAMPLING_CALLCHAINS VALUES {stacks};""",
    )
    profile = load(path)
    assert paths(profile, "spin") == ["MainThread > worker > spin"]
    assert profile.metrics["sampled_cpu_time_ns"].total.tolist() == [5 * MS]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (_EMPTY, "no CUDA calls"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX;", "damaged database"),
    ],
)
def test_what_is_no_export(tmp_path: Path, script: str, reason: str) -> None:
    with pytest.raises(ProfileDataError, match=reason):
        load(export(tmp_path / "report.sqlite", script))


def test_damaged_and_foreign_databases(tmp_path: Path) -> None:
    whole = export(tmp_path / "report.sqlite").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "odd").write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    (tmp_path / "head").write_bytes(whole[:100])
    with closing(sqlite3.connect(tmp_path / "other")) as made:
        made.execute("CREATE TABLE people (name TEXT)")
        made.commit()
    for name in ("cut", "odd", "head", "other"):
        with pytest.raises(ProfileDataError) as caught:
            load(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_values_of_other_types_are_left_out(tmp_path: Path) -> None:
    path = export(
        tmp_path / "report.sqlite",
        """UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = NULL;
        UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET deviceId = 'x', streamId = NULL, correlationId = 'y';
        UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET nameId = 99;""",
    )
    profile = load(path)
    assert profile.trust.counters["events_without_times"] == 2
    assert profile.trust.counters["launches_unmatched"] == 2


@pytest.mark.traces
def test_a_real_export_equals_an_independent_count() -> None:
    path = Path(os.environ.get("DEEPCONTEXT_TRACES", "/nonexistent")) / "nsys_h100_2gpu_1s.sqlite"
    if not path.exists():
        pytest.skip("set DEEPCONTEXT_TRACES to a folder with nsys_h100_2gpu_1s.sqlite")
    profile = load(path)
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as opened:
        kernels = opened.execute(
            "SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL "
            "JOIN StringIds ON id = demangledName GROUP BY value"
        ).fetchall()
        (linked,) = opened.execute(
            """SELECT count(*) FROM (SELECT correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL
            UNION ALL SELECT correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY
            UNION ALL SELECT correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMSET) AS work
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS calls ON calls.correlationId = work.correlationId
            AND calls.globalTid / 16777216 = work.globalPid / 16777216"""
        ).fetchone()
        (ranges,) = opened.execute("SELECT count(*) FROM NVTX_EVENTS").fetchone()
        (environment,) = opened.execute(
            "SELECT group_concat(value, char(10)) FROM TARGET_INFO_SYSTEM_ENV"
        ).fetchone()
    rows = profile.metrics["gpu_time_ns"]
    counts: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for node, count, total in zip(
        rows.node.tolist(), rows.count.tolist(), rows.total.tolist(), strict=True
    ):
        frame = profile.frame(node)
        if frame.kind is FrameKind.KERNEL:
            counts[frame.name] += count
            times[frame.name] += total
    assert counts == {name: count for name, count, _ in kernels}
    for name, _, total in kernels:
        assert times[name] == pytest.approx(total, rel=1e-3)
    assert profile.trust.counters["launches_matched"] == linked
    assert profile.trust.counters["operators"] + profile.trust.counters["scopes"] == ranges
    texts = {frame.name for frame in profile.frames} | {frame.file for frame in profile.frames}
    assert not {line for line in (environment or "").split("\n") if len(line) > 8} & texts
