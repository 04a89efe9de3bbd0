"""What was said of a child is taken back when its profile appears."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from deepcontext.profiler.format import run_directory

if TYPE_CHECKING:
    from pathlib import Path

# A child without the path of the launch that maps a framework, by a file with such a name.
PROGRAM = """
import mmap, pathlib, subprocess, sys
from deepcontext.profiler.recording.launch import missed_children

missed_children._LEAST_AGE_S = 0.0
run, folder, host = map(pathlib.Path, sys.argv[1:])
library = folder / "libtorch_python.so"
library.write_bytes(bytes(mmap.PAGESIZE))
code = '''
import mmap, sys
file = open(sys.argv[1], "rb")
kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(flush=True)
sys.stdin.read()
'''
child = subprocess.Popen(
    [sys.executable, "-c", code, library], stdin=-1, stdout=-1, env={}
)
child.stdout.readline()
children = missed_children.MissedChildren(run)
children.look()
assert [f"process {child.pid}," in note for note in children.notes()] == [True], children.notes()
(run / host).mkdir(parents=True)
(run / host / f"{child.pid}-1.dcprof").touch()
children.look()
assert children.notes() == [] and children.count == 0
child.communicate()
"""


def test_a_child_whose_profile_comes_late_is_not_missed(tmp_path: Path) -> None:
    host = run_directory.host_name()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "job.dcrun"), str(tmp_path), host]
    subprocess.run(command, check=True, timeout=120)
