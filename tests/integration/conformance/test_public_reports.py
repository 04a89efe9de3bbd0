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
names = [n for n in dir(time) if n.startswith(("time", "monotonic", "perf_counter", "process_time", "thread_time"))]
for value in (0, 10**19):
    for name in names:
        setattr(time, name, unittest.mock.Mock(return_value=value))
    wait(0.5)
print(len(names) >= 10)
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
    ],
)
def test_program_is_unharmed_and_its_profile_complete(same_as_python: Any, source: str) -> None:
    is_complete(same_as_python(source))
    assert not list(same_as_python.profile_path.parent.glob("out.2*"))
