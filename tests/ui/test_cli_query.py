"""`deepcontext query` and `export --format parquet`: the sums of the profile, by SQL and by other readers."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pytest

from deepcontext.errors import EnvironmentProblem
from deepcontext.profiler.format.frame import Phase
from deepcontext.profiler.format.metric import Aggregation
from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.sql.database import Database
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
SUMS = "SELECT metric, sum(exclusive)::BIGINT FROM costs WHERE aggregation = 'sum' GROUP BY ALL"


@pytest.fixture
def in_folder(training_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(training_folder)
    return training_folder


@pytest.fixture
def run_of_two_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a run directory with three ranks; rank 2 is on a host of its own."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "train.dcrun"
    run.mkdir()
    content = {"format": "deepcontext run", "version": 1, "program": "train.py"}
    (run / "job.json").write_text(json.dumps(content))
    made = random_profile(60, seed=1)
    for rank, host in enumerate(["n0", "n0", "n1"]):
        (run / host).mkdir(exist_ok=True)
        run_info = dataclasses.replace(made.run, rank=rank, ranks=3, hostname=host, pid=100 + rank)
        path = run / host / f"rank{rank:05}-{rank:07}-1f.dcprof"
        dataclasses.replace(made, run=run_info).save(path)
    return run


def _query(
    capsys: pytest.CaptureFixture[str], sql: str, *files: str, code: int = 0
) -> list[dict[str, Any]]:
    assert app.main(["query", "--json", sql, *files]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def _totals(profile: Profile) -> dict[str, int]:
    return {
        name: int(profile.inclusive(name)[0])
        for name, rows in profile.metrics.items()
        if rows.descriptor.aggregation is Aggregation.SUM
    }


def test_sums_are_those_of_the_report(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del in_folder
    totals = _totals(Profile.load("troubled.dcprof"))
    rows = _query(capsys, SUMS, "troubled.dcprof")
    assert {row["metric"]: next(iter([*row.values()][1:])) for row in rows} == totals

    assert app.main(["export", "troubled.dcprof", "--format", "parquet"]) == 0
    assert "written to 'troubled.parquet', " in capsys.readouterr().out
    read = duckdb.sql(SUMS.replace("costs", "'troubled.parquet'")).fetchall()
    assert dict(read) == totals
    frame = pl.read_parquet("troubled.parquet").filter(pl.col("aggregation") == "sum")
    by_metric = frame.group_by("metric").agg(pl.sum("exclusive"))
    assert dict(by_metric.iter_rows()) == totals
    # The profiler's own file is replaced, another Parquet file is not.
    assert (
        app.main(["export", "train.dcprof", "--format", "parquet", "-o", "troubled.parquet"]) == 0
    )
    frame.write_parquet("foreign.parquet")
    words = ["export", "train.dcprof", "--format", "parquet", "-o", "foreign.parquet"]
    frame.drop("format").write_parquet("foreign.parquet")
    assert app.main(words) == 2
    assert "is not a Parquet file of deepcontext" in capsys.readouterr().err


def test_every_column_of_every_call_path(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del in_folder
    profile = Profile.load("troubled.dcprof")
    rows = _query(capsys, "SELECT * FROM costs", "troubled.dcprof")
    found = {(row["metric"], row["node"]): row for row in rows}
    assert len(found) == len(rows)
    for metric, table in profile.metrics.items():
        exclusive, inclusive = profile.exclusive(metric), profile.inclusive(metric)
        expected = {*table.node.tolist(), *np.flatnonzero(inclusive).tolist()}
        assert {node for name, node in found if name == metric} == expected
        place = {node: index for index, node in enumerate(table.node.tolist())}
        for node in expected:
            row, frame = found[metric, node], profile.frame(node)
            phase = Phase(int(profile.tree.phase[node]))
            assert row["path"] == ";".join(each.name for each in profile.path(node)[1:])
            assert (row["kind"], row["name"]) == (frame.kind.label, frame.name)
            assert (row["file"], row["line"]) == (frame.file, frame.line)
            assert row["phase"] == ("" if phase is Phase.NONE else phase.label)
            assert (row["exclusive"], row["inclusive"]) == (exclusive[node], inclusive[node])
            least = (
                None
                if table.minimum is None
                else table.minimum[place[node]]
                if node in place
                else None
            )
            assert row["least"] == least
            assert row["count"] == (table.count[place[node]] if node in place else 0)
            assert row["rank"] is None


def test_the_processes_of_a_job(run_of_two_hosts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT rank, host, pid, ranks FROM processes ORDER BY rank"
    rows = _query(capsys, sql, run_of_two_hosts.name)
    assert [tuple(row.values()) for row in rows] == [
        (0, "n0", 100, 3),
        (1, "n0", 101, 3),
        (2, "n1", 102, 3),
    ]
    assert app.main(["export", run_of_two_hosts.name, "--format", "parquet"]) == 0
    out = capsys.readouterr().out
    assert "written to 'train.n0.parquet'" in out
    assert "written to 'train.n1.parquet'" in out
    by_rank = "SELECT rank, sum(exclusive)::BIGINT FROM {} WHERE metric = 'host_time_ns' GROUP BY 1"
    total = int(Profile.load(next(run_of_two_hosts.glob("n1/*"))).inclusive("host_time_ns")[0])
    assert dict(duckdb.sql(by_rank.format("'train.n0.parquet'")).fetchall()) == {0: total, 1: total}
    assert dict(duckdb.sql(by_rank.format("'train.n1.parquet'")).fetchall()) == {2: total}
    words = ["export", run_of_two_hosts.name, "--format", "parquet", "-o", "-"]
    assert app.main(words) == 2
    assert "becomes a file for each host" in capsys.readouterr().err


def test_a_damaged_file_of_a_job_is_told_and_left_out(
    run_of_two_hosts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = next(run_of_two_hosts.glob("n0/rank00001*"))
    damaged.write_bytes(damaged.read_bytes()[:-50])
    assert app.main(["query", "SELECT rank FROM processes ORDER BY 1", run_of_two_hosts.name]) == 5
    printed = capsys.readouterr()
    assert printed.out.split() == ["rank", "0", "2"]
    assert printed.err.startswith("[deepcontext] left out: cannot read ")
    assert app.main(["export", run_of_two_hosts.name, "--format", "parquet"]) == 5
    assert duckdb.sql("SELECT DISTINCT rank FROM 'train.n0.parquet'").fetchall() == [(0,)]


def test_a_single_damaged_file_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.dcprof"
    path.write_bytes(b"no profile")
    assert app.main(["query", "SELECT 1", str(path)]) == 5
    assert capsys.readouterr().err.startswith(f"error: cannot read '{path}'")
    assert app.main(["export", str(path), "--format", "parquet", "-o", str(tmp_path / "o")]) == 5


def test_text_and_csv(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del in_folder
    sql = 'SELECT \'a b\' AS name, 12 AS "a, b", 2.5::DOUBLE AS "long name", NULL AS nothing'
    assert app.main(["query", sql, "train.dcprof"]) == 0
    assert capsys.readouterr().out == (
        "name  a, b  long name  nothing\n" + "a b     12        2.5        -\n"
    )
    assert app.main(["query", "--csv", sql, "train.dcprof"]) == 0
    read = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert read == [["name", "a, b", "long name", "nothing"], ["a b", "12", "2.5", ""]]
    assert app.main(["query", "SELECT rank FROM processes WHERE false", "train.dcprof"]) == 0
    assert capsys.readouterr().out == "rank\n"
    rows = _query(
        capsys, "SELECT 'nan'::DOUBLE AS x, [1, 2] AS y, DATE '2026-01-01' AS z", "train.dcprof"
    )
    assert rows == [{"x": None, "y": [1, 2], "z": "2026-01-01"}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", 'cannot run the SQL: Parser Error: syntax error at or near "SELEC"'),
        ("SELECT speed FROM costs", 'Referenced column "speed" not found in FROM clause'),
        ("SELECT * FROM '/etc/passwd'", "cannot run the SQL: "),
        ("COPY costs TO 'stolen.csv'", "file system operations are disabled"),
        ("SET enable_external_access = true", "cannot run the SQL: "),
    ],
)
def test_sql_errors_are_one_line(
    in_folder: Path, capsys: pytest.CaptureFixture[str], sql: str, message: str
) -> None:
    assert app.main(["query", sql, "train.dcprof"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (in_folder / "stolen.csv").exists()


def test_both_outputs_at_once_are_refused(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del in_folder
    assert app.main(["query", "--json", "--csv", "SELECT 1", "train.dcprof"]) == 2
    assert "--json and --csv exclude each other" in capsys.readouterr().err
    words = ["export", "train.dcprof", "--format", "parquet", "--metric", "host_time_ns"]
    assert app.main(words) == 2
    assert "format 'parquet' holds no chosen metric; leave out --metric" in capsys.readouterr().err


def test_rows_beyond_the_memory_are_an_error_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Database() as database:
        database.run("SET memory_limit = '4MB'")
        with pytest.raises(EnvironmentProblem, match="the tables do not fit into memory"):
            database.run("CREATE TABLE t AS SELECT random() AS x FROM range(2000000)")
        assert not list(tmp_path.iterdir())


def _without_duckdb(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from deepcontext.ui.cli.app import main\nsys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [["query", "SELECT 1", "train.dcprof"], ["export", "train.dcprof", "--format", "parquet"]],
)
def test_a_missing_extra_is_named(in_folder: Path, words: Sequence[str]) -> None:
    done = _without_duckdb(words, in_folder)
    assert done.returncode == 4
    assert done.stderr == (
        "error: SQL needs the package duckdb, which is not installed; run "
        "'pip install \"deepcontext-profiler[sql]\"'\n"
    )


def test_the_reference_has_every_column(
    in_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del in_folder
    page = (ROOT / "docs" / "reference" / "tables.md").read_text("utf-8")
    for table in ("costs", "processes"):
        section = page.partition(f"## `{table}`\n")[2].partition("\n## ")[0]
        documented = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        rows = _query(capsys, f"SELECT * FROM {table} LIMIT 1", "train.dcprof")
        assert [*rows[0]] == documented


def test_the_commands_of_the_how_to_read_parquet(run_of_two_hosts: Path) -> None:
    assert app.main(["export", str(run_of_two_hosts), "--format", "parquet"]) == 0
    page = (ROOT / "docs" / "how-to" / "query-with-sql.md").read_text("utf-8")
    (sql,) = re.findall(r'^\$ duckdb -c "(.*)"$', page, re.MULTILINE)
    (program,) = re.findall(r'^\$ python -c "(.*)"$', page, re.MULTILINE)
    assert len(duckdb.sql(sql).fetchall()) == 3
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "host_time_ns" in done.stdout
