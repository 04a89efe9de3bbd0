"""A native collector that is started twice, and stopped once: no wait, no second thread, no hook left."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import faulthandler, os, sys, time
faulthandler.dump_traceback_later(200, exit=True)
from deepcontext import _native

def threads():
    names = [open(f"/proc/self/task/{each}/comm").read() for each in os.listdir("/proc/self/task")]
    return names.count("deepcontext\\n")

def settles(function, *wanted):
    while function() not in wanted:  # a thread that has ended is listed a little longer
        time.sleep(0.001)

STARTS = {
    "windows": (lambda: _native.start_windows(["host_time_ns"]), _native.stop_windows),
    "watcher": (lambda: _native.start_watcher(lambda: None, 3600.0, 3600.0), _native.stop_watcher),
    "sampler": (lambda: _native.start_sampler(100.0), _native.stop_sampler),
    "memory": (_native.memory_start, _native.memory_stop),
    "native frames": (_native.native_start, _native.native_stop),
    "nccl": (_native.nccl_start, _native.nccl_stop),
}
assert _native.watch_code() == ""
for turn in range(3):
    _native.begin(1 << 16)
    for name, (start, stop) in STARTS.items():
        before = threads()
        start()
        once = threads()
        start()
        settles(threads, once)
        stop()
        settles(threads, before)
        stop()
    _native.begin(1 << 16)  # as well
    _native.end()
    _native.end()
_native.unwatch_code()
print("done")
"""


def test_a_collector_that_is_started_twice_runs_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]
