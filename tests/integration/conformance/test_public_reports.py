"""Circumstances in which other profilers failed; `PUBLIC_REPORTS.md` says where that was reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from deepcontext import Profile

NO_DESCRIPTOR = """\
import os, resource, time
time.sleep(0.5)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(error)
time.sleep(0.5)
"""
CLOCKS_REPLACED = """\
import time, unittest.mock
wait = time.sleep
kinds = "time", "monotonic", "perf_counter", "process_time", "thread_time"
names = [name for name in dir(time) if name.startswith(kinds)]
for value in (0, 10**19):
    for name in names:
        setattr(time, name, unittest.mock.Mock(return_value=value))
    wait(0.5)
print(len(names) >= 10)
"""
# What is called from elsewhere than this program fails, and is printed.
FILES_REPLACED = """\
import builtins, io, os, sys, time
wait, own, strangers = time.sleep, __file__, []
wait(0.2)

def broken(name):
    def call(*arguments, **keywords):
        strangers.append(name)
        raise OSError(5, name)
    return call

kept = {"fspath", "fsdecode", "fsencode"}
real = [(os, name, getattr(os, name)) for name in dir(os) if name[0] != "_" and name not in kept]
real += [(builtins, "open", open), (io, "open", open), (os.path, "realpath", os.path.realpath)]
real = [entry for entry in real if callable(entry[2]) and not isinstance(entry[2], type)]
for place, name, function in real:
    setattr(place, name, broken(name))
wait(0.8)
for place, name, function in real:
    setattr(place, name, function)
print(strangers)
"""


# The import hook's own calls look like those of the import system, or are a few.
TRACED = """\
import sys, threading

def note(frame, event, argument):
    if "/deepcontext/" in frame.f_code.co_filename:
        seen.add(frame.f_code.co_filename.rpartition("/")[2])
    return note

seen = set()
for install in (threading.setprofile, threading.settrace, sys.setprofile, sys.settrace):
    install(note)
import torch
sys.settrace(None)
sys.setprofile(None)
print(seen - {"import_hook.py"})
"""


def is_complete(profile: Profile) -> None:
    assert profile.run.exit_reason == "exit"
    assert 0.5e9 < profile.run.wall_ns < 600e9
    assert 0 < profile.run.cpu_user_ns < 600e9
    assert profile.run.peak_rss_bytes > 0


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(NO_DESCRIPTOR, id="no descriptor is free at the end"),
        pytest.param(CLOCKS_REPLACED, id="the functions of time are replaced"),
        pytest.param(FILES_REPLACED, id="open and the functions of os are replaced"),
    ],
)
def test_program_is_unharmed_and_its_profile_complete(same_as_python: Any, source: str) -> None:
    is_complete(same_as_python(source))
    assert not list(same_as_python.profile_path.parent.glob("out.2*"))


def test_threads_that_the_program_replaced_are_not_used_for_calibration(
    same_as_python: Any,
) -> None:
    """gevent's threads are greenlets of the thread that starts them, and its locks switch greenlets."""
    pytest.importorskip("torch")
    profile = same_as_python(
        "import _thread\n"
        "_thread.start_new_thread = lambda work, arguments: work(*arguments)\n"
        "import torch\n"
        "print(torch.ones(3).neg())\n"
    )
    assert profile.query().kind("operator").name("aten::neg").nodes()


def test_tracer_of_the_program_does_not_see_the_profiler_start(same_as_python: Any) -> None:
    same_as_python(TRACED, files={"torch.py": "__version__ = '0'\n"})


def test_umask_of_the_program_takes_no_rights_from_the_profiler(same_as_python: Any) -> None:
    child = "import time, torch; time.sleep(0.5)"
    files = {"torch.py": "__version__ = '0'\n"}
    same_as_python(
        "import os, subprocess, sys\n"
        "os.umask(0o777)\n"
        f"print(subprocess.run([sys.executable, '-c', {child!r}]).returncode)\n",
        files=files,
    )
    run = same_as_python.profile_path.with_suffix(".dcrun")
    made = [path for path in run.rglob("*") if path.parent != run / ".launch"]
    assert [path for path in made if path.suffix == ".dcprof"]
    assert not [path for path in made if path.stat().st_mode & 0o600 != 0o600]
