"""`deepcontext profile COMMAND`: commands on PATH, launchers, shell scripts; their status and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.recording.launch.target import Executable, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROFILE = (sys.executable, "-m", "deepcontext", "profile")
BIN = str(Path(sys.executable).parent)
RANK = """
import os
import torch
import torch.distributed as distributed
distributed.init_process_group("gloo")
total = torch.ones(2)
distributed.all_reduce(total)
assert total[0] == 2
distributed.destroy_process_group()
"""


def environment(**variables: str) -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**inherited, "OMP_NUM_THREADS": "1", "PATH": path, **variables}


def run(
    folder: Path, words: Sequence[str], files: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    for name, text in (files or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o700)
    return subprocess.run(
        [*PROFILE, "--no-report", *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix in {".dcprof", ".dcrun"}}


def script(text: str) -> str:
    return f"#!{sys.executable}\n{text}"


@pytest.mark.parametrize(
    ("words", "files", "written"),
    [
        (["python", "train.py", "x"], {"train.py": "import sys; print(sys.argv)"}, "train.dcprof"),
        (
            ["python", "-uX", "utf8", "-m", "train", "x"],
            {"train.py": "import sys; print(sys.flags.utf8_mode, sys.argv)"},
            "train.dcprof",
        ),
        (["tool", "x"], {"bin/tool": script("import sys; print(sys.argv)")}, "tool.dcprof"),
        (["bin/tool", "x"], {"bin/tool": script("import sys; print(sys.argv)")}, "tool.dcprof"),
        (
            ["tool", "x"],
            {
                "bin/tool": f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
                "import sys; print(sys.argv)"
            },
            "tool.dcprof",
        ),
        (["pytest", "--version"], {}, "pytest.dcprof"),
    ],
    ids=["python", "flags of python", "script on PATH", "script", "long path", "pytest"],
)
def test_a_command_written_in_python_is_recorded_as_a_script(
    tmp_path: Path,
    words: list[str],
    files: dict[str, str],
    written: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    done = run(tmp_path, words, files)
    plain = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert names(tmp_path) == {written}
    assert Profile.load(tmp_path / written).run.exit_reason == "exit"


@pytest.mark.long
def test_torchrun_is_followed_and_not_recorded(tmp_path: Path) -> None:
    words = ["torchrun", "--standalone", "--nproc-per-node", "2", "train.py"]
    done = run(tmp_path, words, {"train.py": RANK})
    assert done.returncode == 0, done.stderr
    assert "profiles of 2 processes written to 'train.dcrun'" in done.stderr
    assert names(tmp_path) == {"train.dcrun"}
    found = [Profile.load(path).run for path in run_directory.profiles(tmp_path / "train.dcrun")]
    assert sorted(each.rank for each in found) == [0, 1]


def test_processes_of_a_shell_script_are_recorded(tmp_path: Path) -> None:
    # A framework is known by the name of its module.
    files = {
        "torch.py": "",
        "child.py": "import torch\n",
        "run.sh": "#!/bin/sh\npython child.py; exit 3",
    }
    done = run(tmp_path, ["-o", "x.dcprof", "./run.sh"], files)
    assert done.returncode == 3
    assert "profiles of 1 process written to 'x.dcrun'" in done.stderr
    assert names(tmp_path) == {"x.dcrun"}


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        (("bash", "run.sh"), "run"),
        (("sh", "-c", "true"), "sh"),
        (("torchrun", "--nproc-per-node", "2", "./run.sh", "x.py"), "run"),
        (("torchrun", "-m", "package.train", "-m", "x"), "package.train"),
        (("-m", "torch.distributed.run", "run.sh"), "run"),
        (("python", "-um", "torch.distributed.run", "-m", "package.train"), "package.train"),
        (("python", "-m", "torch.distributed.run", "missing"), "torch.distributed.run"),
    ],
)
def test_default_name_of_what_a_command_writes(
    tmp_path: Path, words: tuple[str, ...], stem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.sh").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", BIN, prepend=os.pathsep)
    command = resolve(words)
    assert isinstance(command, Executable)
    assert command.stem == stem


def test_a_command_without_a_framework_leaves_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, ["sh", "-c", "cat; exit 3"])
    assert (done.returncode, names(tmp_path)) == (3, set())
    assert "no process that could be recorded imported torch or jax" in done.stderr
    assert run(tmp_path, ["--strict", "true"]).returncode == 4
    assert run(tmp_path, ["-q", "true"]).stderr == ""
    (tmp_path / "broken").write_bytes(b"\x7fELF")
    (tmp_path / "broken").chmod(0o700)
    done = run(tmp_path, ["./broken"])
    assert (done.returncode, done.stderr.count("\n"), names(tmp_path)) == (4, 1, set())


COUNTER = """
import signal, sys, time
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append("TERM"))
signal.signal(signal.SIGINT, lambda *_: seen.append("INT"))
signal.signal(signal.SIGUSR1, lambda *_: seen.append("USR1"))
print("ready", flush=True)
end = time.monotonic() + 60
while not seen and time.monotonic() < end: time.sleep(0.01)
end = time.monotonic() + 0.5
while time.monotonic() < end: time.sleep(0.01)
print(seen)
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROFILE, "-q", *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("sender", [os.kill, os.killpg])
@pytest.mark.parametrize("name", ["TERM", "INT", "USR1"])
def test_a_signal_reaches_the_command_once(tmp_path: Path, sender: object, name: str) -> None:
    assert callable(sender)
    (tmp_path / "count.py").write_text(COUNTER, encoding="utf-8")
    with start(tmp_path, "sh", "-c", "trap : USR1 TERM INT; exec python count.py") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        sender(process.pid, getattr(signal, f"SIG{name}"))
        assert process.communicate(timeout=60)[0] == f"['{name}']\n"
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGKILL])
def test_ends_by_the_signal_that_ended_the_command(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path, "sh", "-c", f"kill -{number} $$") as process:
        assert process.wait(60) == -number


def test_a_killed_deepcontext_leaves_no_command(tmp_path: Path) -> None:
    with start(tmp_path, "sh", "-c", "echo $$; exec sleep 600") as process:
        assert process.stdout is not None
        command = int(process.stdout.readline())
        process.kill()
    state = Path(f"/proc/{command}/stat")
    while state.exists() and ") Z " not in state.read_text():
        time.sleep(0.01)
