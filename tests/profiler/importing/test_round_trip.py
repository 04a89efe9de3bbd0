"""The time line of an imported trace, exported again, has the events of the trace."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from deepcontext.ui.cli.app import main
from tests.profiler.importing import traces

if TYPE_CHECKING:
    from pathlib import Path

SHOWN = {"cpu_op", "kernel", "user_annotation"}


@pytest.mark.parametrize("marks", [True, False])
def test_exported_events_are_those_of_the_trace(tmp_path: Path, *, marks: bool) -> None:
    events = [
        each
        for each in traces.training(steps=3)
        if marks or not each["name"].startswith("ProfilerStep")
    ]
    source = traces.write(tmp_path / "trace.json.gz", events, **traces.NVIDIA)
    output = tmp_path / "again.json"
    assert main(["export", "--format", "chrome-trace", str(source), "-o", str(output)]) == 0
    exported = json.loads(output.read_text())["traceEvents"]
    found = Counter(
        (each["name"], round(each["ts"]), round(each["dur"]))
        for each in exported
        if each["ph"] == "X" and not each["name"].startswith("step ")
    )
    expected = Counter(
        (each["name"], round(each["ts"]), round(each["dur"]))
        for each in events
        if each["cat"] in SHOWN and not each["name"].startswith("ProfilerStep")
    )
    assert expected - found == Counter()
    assert main(["export", "--format", "perfetto", str(source), "-o", str(tmp_path / "p")]) == 0
