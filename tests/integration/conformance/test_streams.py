"""At a closed or full standard stream the profiler's lines are lost, and the program is unharmed."""

from __future__ import annotations

import os
import resource
import subprocess
from typing import Any

import pytest

CLOSINGS = ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"]
# Prints, and writes down what a program can see of its descriptors while snapshots are written. A
# number is taken while the profiler writes a file, as with any library that has a thread: the lowest
# seen are the program's.
LOOK = """
import os, sys, time

def status(number):
    try:
        return os.fstat(number).st_ino > 0
    except OSError as error:
        return error.errno

print("out")
print("err", file=sys.stderr)
seen = [[getattr(sys, name) is None for name in ("stdin", "stdout", "stderr")]]
seen.append([status(number) for number in range(3)])
try:
    os.write(2, b"raw\\n")
except OSError as error:
    seen.append(error.errno)
lowest = [1000, 1000]
for _ in range(35):
    time.sleep(0.02)
    first = os.open(os.devnull, os.O_RDWR)
    opened = sorted([first, os.dup(first)])  # the second is lower if the profiler has just closed it
    lowest = list(map(min, lowest, opened))
    for descriptor in opened:
        os.close(descriptor)
seen.append(lowest)
with open("seen.txt", "a") as file:
    print(seen, file=file)
sys.exit(3)
"""


def redirected(how: str) -> list[str]:
    return ["bash", "-c", f'exec "$@" {how}', "bash"]


@pytest.mark.parametrize("how", CLOSINGS)
def test_closed_streams(same_as_python: Any, how: str) -> None:
    profile = same_as_python(LOOK, status=3, prefix=redirected(how))
    plain, profiled = (same_as_python.folder / "seen.txt").read_text().splitlines()
    assert profiled == plain
    assert profile.run.exit_reason == "exit"


@pytest.mark.parametrize(
    ("how", "source", "status"),
    [
        ("2>/dev/full", "import sys; print('out'); sys.exit(4)", 4),
        ("2>/dev/full", "import sys; print('lost', file=sys.stderr)", 120),
        (">/dev/full", "print('lost at exit')", 120),
        (">/dev/full", "print('lost', flush=True)", 120),
        (">/dev/full 2>/dev/full", "print('lost at exit')", 120),
        (">/dev/full 2>/dev/full", "import sys; sys.exit(5)", 5),
    ],
)
def test_full_streams(same_as_python: Any, how: str, source: str, status: int) -> None:
    same_as_python(source, status=status, prefix=redirected(how))


@pytest.mark.parametrize("action", ["SIG_IGN", "SIG_DFL"])
def test_standard_error_that_nobody_reads_any_more(same_as_python: Any, action: str) -> None:
    def close_stderr(process: Any) -> None:
        process.stderr.close()
        process.stderr = None

    same_as_python(
        "import signal, sys, time\n"
        f"signal.signal(signal.SIGPIPE, signal.{action})\n"
        "print('ready', flush=True)\ntime.sleep(0.6)\nsys.exit(6)\n",
        status=6,
        action=close_stderr,
    )


def test_standard_error_that_is_read_when_the_program_has_ended(same_as_python: Any) -> None:
    """The pipe is full: writing one more byte into it waits for ever."""
    (same_as_python.folder / "program.py").write_text("""
import os
os.set_blocking(2, False)
try:
    while True:
        os.write(2, b"x")
except BlockingIOError:
    os.set_blocking(2, True)
""")
    command = [*same_as_python.profile_command("program.py")]
    command.remove("--no-report")
    with subprocess.Popen(
        command, cwd=same_as_python.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert set(process.stderr.read()) == {ord("x")}
    assert same_as_python.profile_path.exists()


def test_a_profiler_that_does_not_start_and_cannot_say_so(same_as_python: Any) -> None:
    """The program's own sitecustomize still runs."""
    folder = same_as_python.folder
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("import os; os.environ['SITE'] = 'ran'\n")
    (folder / "program.py").write_text("import os, sys; sys.exit(7 if 'SITE' in os.environ else 1)")
    done = subprocess.run(
        [*redirected("2>&-"), *same_as_python.profile_command("--children", "none", "program.py")],
        cwd=folder,
        # What the profiler writes at its start does not fit.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        env={**os.environ, "PYTHONPATH": "site"},
        check=False,
        timeout=60,
    )
    assert done.returncode == 7
    assert not same_as_python.profile_path.exists()
