"""Report, comparison, page and export start with the same metric."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.model.profile import Profile
from deepcontext.ui.cli import app
from deepcontext.ui.measures import measures

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "metric"), [("train", "host_time_ns"), ("plain", "elapsed_time_ns")]
)
def test_every_view_begins_with_the_same_metric(
    training_folder: Path, capsys: pytest.CaptureFixture[str], name: str, metric: str
) -> None:
    file = str(training_folder / f"{name}.dcprof")

    def printed(*words: str) -> str:
        assert app.main(words) == 0
        return capsys.readouterr().out

    assert json.loads(printed("report", "--json", file))["metric"]["name"] == metric
    assert json.loads(printed("diff", "--json", file, file))["metric"] == metric
    assert measures(Profile.load(file))[0].key == metric
    stacks = printed("export", "--format", "collapsed", "-o", "-", file).splitlines()
    by_default = sum(int(line.rpartition(" ")[2]) for line in stacks)
    stacks = printed(
        "export", "--format", "collapsed", "--metric", metric, "-o", "-", file
    ).splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in stacks) == by_default > 0
    assert re.search(r"Source lines|Call paths", printed("report", file))
