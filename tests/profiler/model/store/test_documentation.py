"""The program in docs/formats/profile.md reads a real file with generated code alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepcontext.profiler.format import schema
from tests.synthetic import random_profile

PAGE = Path(__file__).parents[4] / "docs" / "formats" / "profile.md"
PROTO = Path(schema.__file__).with_name("profile.proto")


def test_the_documented_reader_finds_the_hottest_paths(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools compiles profile.proto")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    (tmp_path / "reader.py").write_text(blocks[0], encoding="utf-8")
    compiler = [sys.executable, "-m", "grpc_tools.protoc", f"--python_out={tmp_path}"]
    subprocess.run([*compiler, f"-I{PROTO.parent}", PROTO.name], check=True, timeout=60)
    profile = random_profile(2_000)
    profile.save(tmp_path / "run.dcprof")
    done = subprocess.run(
        [sys.executable, "reader.py", "run.dcprof"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "host_time_ns ns"
    for line, hot in zip(lines[1:6], profile.hot_paths("host_time_ns", 5), strict=True):
        path = " > ".join(frame.name for frame in hot.frames)
        assert line.split(None, 1) == [str(hot.exclusive), path]
