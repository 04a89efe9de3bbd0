"""`deepcontext profile`: what it refuses, what it writes, what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import deepcontext
from deepcontext.errors import UserError
from deepcontext.profiler.format.run_directory import profiles
from deepcontext.profiler.recording.launch.command import (
    SHIM_FOLDER,
    interpreter_flags,
    plain_command,
    profiled_command,
)
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.program import Program
from deepcontext.profiler.recording.rank import Rank, current_rank
from deepcontext.ui.cli import app, profile

DEEPCONTEXT = (sys.executable, "-m", "deepcontext", "profile")


def run(
    folder: Path, *words: str, interpreter: tuple[str, ...] = DEEPCONTEXT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*interpreter, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('ran')\n", encoding="utf-8")
    return tmp_path


# -- what is refused, before anything runs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["missing.py"],
            "cannot profile 'missing.py': no such file in '{folder}', and no such command",
        ),
        ([sys.executable], "it names no program; give a script"),
        ([sys.executable, "-uE", "train.py"], "cannot profile under 'python -E'"),
        (["other-python"], "it runs with '{folder}/bin/python'"),
        (["--children", "none", "env"], "records only the processes that this command starts"),
        (["empty"], "cannot profile 'empty': a folder without '__main__.py'"),
        ([""], "cannot profile ''"),
        (["-o", "empty", "train.py"], "cannot write 'empty': it is a folder"),
        (["-o", "no/such/x.dcprof", "train.py"], "the folder '{folder}/no/such' does not exist"),
        (["-o", "train.py", "train.py"], "the file exists and is not a profile"),
        (["-o", "-", "train.py"], "standard output is the program's; name a file"),
        (["-o", "x" * 300, "train.py"], "File name too long"),
        (["-o", "/dev/stdout", "train.py"], "a pipe or a stream does not allow; name a file"),
        (["-o", "/proc/x", "train.py"], "cannot write '/proc/x': "),
        (["-o", "notes.txt", "train.py"], "the file exists and is not a profile"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refused_with_the_reason_and_nothing_has_run(
    folder: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("deepcontext profile", encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to("/bin/sh")
    other = folder / "bin" / "other-python"
    other.write_text(f"#!{folder}/bin/python\nprint('ran')\n", encoding="utf-8")
    other.chmod(0o700)
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    before = sorted(path.name for path in folder.iterdir())
    done = run(folder, *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message.format(folder=folder) in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "deepcontext profile"
    assert (folder / "train.py").read_text(encoding="utf-8") == "print('ran')\n"


def test_a_disk_that_is_full_at_the_start_leaves_nothing_behind(folder: Path) -> None:
    """Half a run directory would be refused by the next run: it is no folder of the profiler's."""
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)); "
    full = (sys.executable, "-c", f"{limited}os.execv(sys.executable, sys.argv[1:])", *DEEPCONTEXT)
    done = run(folder, "train.py", interpreter=full)
    assert done.returncode == 4
    assert done.stderr.startswith(f"error: cannot write '{folder}/train.dcrun': File too large; ")
    assert [path.name for path in folder.iterdir()] == ["train.py"]
    assert run(folder, "-q", "train.py").stdout == "ran\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_refused_without_permission(folder: Path) -> None:
    (folder / "train.py").chmod(0)
    assert "may not be read by this user" in run(folder, "train.py").stderr
    (folder / "train.py").chmod(0o600)
    (folder / "closed").mkdir(mode=0o500)
    assert (
        "closed/x.dcprof': Permission denied"
        in run(folder, "-o", "closed/x.dcprof", "train.py").stderr
    )


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-IB"])
def test_interpreter_flags_that_keep_the_profiler_out_are_refused(folder: Path, flag: str) -> None:
    # -S hides the installed packages too, so the package's own folder is named.
    package = str(Path(deepcontext.__file__).parents[1])
    code = (
        f"import sys; sys.path.insert(0, {package!r});"
        "sys.orig_argv[2:2] = ['-m', 'deepcontext'];"
        "from deepcontext.profiler.recording.launch.command import profiled_command as c;"
        "from deepcontext.profiler.recording.launch.program import Program as P;"
        "from deepcontext.profiler.recording.launch.options import LaunchOptions as O;"
        "c(P(('train.py',)), O('a', 'a'))"
    )
    done = subprocess.run(
        [sys.executable, flag, "-c", code, "x", "y"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert f"cannot profile under 'python {flag[:2]}'" in done.stderr


# -- which program, which arguments


@pytest.mark.parametrize(
    ("words", "own", "program"),
    [
        (["a.py"], [], ["a.py"]),
        (["a.py", "-o", "x", "-h"], [], ["a.py", "-o", "x", "-h"]),
        (["-o", "x", "a.py", "--", "-m"], ["-o", "x"], ["a.py", "--", "-m"]),
        (["-ox", "a.py"], ["-ox"], ["a.py"]),
        (["--output=x", "a.py"], ["--output=x"], ["a.py"]),
        (["--output", "x", "--shapes", "a.py"], ["--output", "x", "--shapes"], ["a.py"]),
        (["-o", "-", "-"], ["-o", "-"], ["-"]),
        (["--", "-o"], [], ["-o"]),
        (["--", "--shapes.py"], [], ["--shapes.py"]),
        (["--shapes", "-m", "p.q", "-c"], ["--shapes"], ["-m", "p.q", "-c"]),
        (["-mp.q", "x"], [], ["-mp.q", "x"]),
        (["-c", "print(1)", "-o"], [], ["-c", "print(1)", "-o"]),
        (["--shapes"], ["--shapes"], []),
        ([], [], []),
        (["-h"], ["-h"], []),
    ],
    ids=str,
)
def test_arguments_from_the_program_on_are_the_programs(
    words: list[str], own: list[str], program: list[str]
) -> None:
    parser = profile.make_parser()
    assert parser.split_program(words) == (own, tuple(program))


@pytest.mark.parametrize(
    ("arguments", "stem"),
    [
        (("train.py",), "train"),
        (("sub/my.train.py", "x"), "my.train"),
        (("-m", "package.train"), "package.train"),
        (("-mpackage.train",), "package.train"),
        (("-c", "print()"), "command"),
        (("-",), "stdin"),
        (("app/",), "app"),
    ],
)
def test_default_name_of_the_profile(arguments: tuple[str, ...], stem: str) -> None:
    assert Program(arguments).stem == stem


@pytest.mark.parametrize(
    ("orig_argv", "flags"),
    [
        (("python", "-m", "deepcontext", "profile", "a.py"), ()),
        (("python", "-X", "utf8", "-m", "deepcontext", "profile", "-m", "b"), ("-X", "utf8")),
        (("python", "-W", "error", "-B", "-mdeepcontext", "profile"), ("-W", "error", "-B")),
        (("python", "-Bm", "deepcontext", "profile"), ("-B",)),
        (("python", "/venv/bin/deepcontext", "profile", "-m", "deepcontext"), ()),
        (("python", "-sP", "/usr/bin/deepcontext", "profile", "a.py"), ()),
        (("python", "-c", "import x", "profile"), ()),
    ],
)
def test_flags_before_dash_m_deepcontext_are_the_program_s(
    orig_argv: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    assert interpreter_flags(orig_argv) == flags


def test_flags_of_the_interpreter_reach_the_program(folder: Path) -> None:
    source = "import sys; print(sys.flags.optimize, sys.warnoptions, sys._xoptions, sys.orig_argv)"
    (folder / "train.py").write_text(source, encoding="utf-8")
    flags = ("-O", "-W", "error", "-X", "dev=0")
    plain = run(folder, "train.py", interpreter=(sys.executable, *flags))
    profiled = run(
        folder,
        "-q",
        "train.py",
        interpreter=(sys.executable, *flags, "-m", "deepcontext", "profile"),
    )
    assert profiled.stdout == plain.stdout


def test_environment_differs_in_two_variables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "lib")
    program = Program(("a.py",))
    plain = plain_command(program)
    profiled = profiled_command(program, LaunchOptions("/x", "x"))
    assert profiled.argv == plain.argv
    changed = dict(profiled.environment.items() - plain.environment.items())
    assert changed.pop("PYTHONPATH") == f"{SHIM_FOLDER}:lib"
    assert list(changed) == ["DEEPCONTEXT_LAUNCH"]
    assert list(profiled.environment) == [*plain.environment, "DEEPCONTEXT_LAUNCH"]


def test_launch_folder_shadows_no_module_of_the_program() -> None:
    assert [path.name for path in SHIM_FOLDER.glob("*") if path.name != "__pycache__"] == [
        "sitecustomize.py"
    ]


# -- what is written and printed


def test_profile_and_report_follow_the_output_of_the_program(folder: Path) -> None:
    done = run(folder, "train.py")
    assert done.returncode == 0
    assert done.stdout == "ran\n"
    lines = done.stderr.splitlines()
    assert lines[0] == "[deepcontext] profile written to 'train.dcprof'"
    assert lines[-1] == "[deepcontext] next: deepcontext report train.dcprof"
    assert lines[1].startswith("train.py: "), "no report between the two"
    loaded = deepcontext.Profile.load(folder / "train.dcprof")
    assert loaded.run.exit_reason == "exit"


def test_next_command_can_be_pasted_into_a_shell(folder: Path) -> None:
    done = run(folder, "--no-report", "-o", "it's a run.dcprof", "train.py")
    command = done.stderr.splitlines()[-1].removeprefix("[deepcontext] next: deepcontext ")
    pasted = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m deepcontext {command} --json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert pasted.returncode == 0, pasted.stderr


def test_no_report_prints_two_lines_and_quiet_none(folder: Path) -> None:
    assert len(run(folder, "--no-report", "train.py").stderr.splitlines()) == 2
    assert run(folder, "--quiet", "train.py").stderr == ""
    assert run(folder, "-q", "train.py").stdout == "ran\n"


def test_report_is_printed_although_warnings_are_errors_for_the_program(folder: Path) -> None:
    done = subprocess.run(
        [*DEEPCONTEXT, "train.py"],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONINSPECT": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert " elapsed, " in done.stderr
    assert "Traceback" not in done.stderr


PLAIN = """\
import time
from threading import Thread

def count():
    return sum(i * i for i in range(4_000_000))

worker = Thread(target=count)
worker.start()
worker.join()
time.sleep(0.3)
"""


def test_a_program_without_a_framework_gets_a_report_of_its_time(folder: Path) -> None:
    (folder / "plain.py").write_text(PLAIN, encoding="utf-8")
    lines = run(folder, "plain.py").stderr.splitlines()
    assert lines[1].startswith("plain.py: ")
    assert "of processor time" in lines[1]
    heading = ["time", "share", "spent", "on", "line", "source"]
    start = next(number for number, line in enumerate(lines) if line.split() == heading)
    # The first line, what limits the run, and of what the shares are: nobody asked for GPUs or docker.
    assert "> the main thread waits" in lines[2]
    assert start <= 9
    assert "plain.py:" in lines[start + 1]
    assert any("time.sleep(0.3)" in line for line in lines[start:])
    assert any("sum(i * i" in line for line in lines[start:])
    # On a busy machine more lines of the program are sampled, and have rows.
    assert len(lines) <= 12 + start


@pytest.mark.parametrize("script", ["", "raise ValueError('at once')\n"])
def test_a_program_too_short_to_be_sampled_gets_one_sentence(folder: Path, script: str) -> None:
    (folder / "short.py").write_text(script, encoding="utf-8")
    done = run(folder, "short.py")
    assert done.returncode == (1 if script else 0)
    said = done.stderr.partition("[deepcontext]")[2].splitlines()
    # A busy machine may take longer over it than from one sample to the next: a table is then shown,
    # of the sampled lines, which cannot be many.
    assert len(said) <= 14
    assert (folder / "short.dcprof").exists()


@pytest.mark.long
def test_torch_that_was_imported_and_not_used_is_mentioned(folder: Path) -> None:
    pytest.importorskip("torch")
    (folder / "unused.py").write_text("import torch\n", encoding="utf-8")
    said = " ".join(run(folder, "unused.py").stderr.split())
    assert "The program imported torch, but called no operator while it was profiled." in said
    assert "imports take" in said
    assert "most at unused.py:1" in said
    assert "docker" not in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-m", "nomodule"], 1, "No module named nomodule"),
        (["-m", "wrong"], 1, "SyntaxError"),
        (["-m", "package"], 1, "No module named package.__main__"),
        (["wrong.py"], 1, "SyntaxError"),
        (["folder"], 1, "SyntaxError"),
        (["-c", "def f(:"], 1, "SyntaxError"),
        (["missing.py"], 2, "no such file"),
    ],
)
def test_a_program_that_never_begins_leaves_no_file(
    folder: Path, words: list[str], code: int, message: str
) -> None:
    (folder / "wrong.py").write_text("def f(:\n", encoding="utf-8")
    for name, file in (("folder", "__main__.py"), ("package", "__init__.py")):
        (folder / name).mkdir()
        (folder / name / file).write_text("def f(:\n" if file == "__main__.py" else "")
    before = {path.name for path in folder.iterdir()}
    done = run(folder, *words)
    assert done.returncode == code
    assert message in done.stderr
    assert "profile written to" not in done.stderr
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == before
    if code == 1:  # and what plain Python says, with one line of deepcontext
        plain = run(folder, *words, interpreter=(sys.executable,))
        assert done.stderr == (
            f"{plain.stderr}[deepcontext] no profile written: the program did not begin\n"
        )


@pytest.mark.parametrize(
    ("words", "stem"), [(["importing.py"], "importing"), (["-m", "failing.part"], "failing.part")]
)
def test_a_program_that_fails_early_has_begun(folder: Path, words: list[str], stem: str) -> None:
    (folder / "wrong.py").write_text("def f(:\n", encoding="utf-8")
    (folder / "importing.py").write_text("import wrong\n", encoding="utf-8")
    (folder / "failing").mkdir()
    (folder / "failing" / "__init__.py").write_text("import wrong\n", encoding="utf-8")
    assert run(folder, "-q", *words).returncode == 1
    assert (folder / f"{stem}.dcprof").exists()


def test_older_profile_is_replaced_and_an_empty_file_too(folder: Path) -> None:
    (folder / "train.dcprof").touch()
    assert run(folder, "-q", "train.py").returncode == 0
    first = deepcontext.Profile.load(folder / "train.dcprof").run
    assert run(folder, "-q", "train.py").returncode == 0
    assert deepcontext.Profile.load(folder / "train.dcprof").run != first


def test_relative_output_is_in_the_folder_of_the_command(folder: Path) -> None:
    (folder / "train.py").write_text("import os; os.chdir('/')", encoding="utf-8")
    run(folder, "-q", "-o", "x.dcprof", "train.py")
    assert (folder / "x.dcprof").exists()


def run_rank(folder: Path, rank: int, *words: str) -> subprocess.CompletedProcess[str]:
    variables = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    interpreter = (*("env", *(f"{k}={v}" for k, v in variables.items())), *DEEPCONTEXT)
    return run(folder, *words, interpreter=interpreter)


def test_all_ranks_of_a_job_write_one_run_directory(folder: Path) -> None:
    for rank in (0, 1):
        done = run_rank(folder, rank, "-o", "out.dcprof", "train.py")
        assert done.returncode == 0
        assert done.stdout == "ran\n"
        # The lowest rank speaks for the job.
        said = "a job write a run directory, 'out.dcrun', not 'out.dcprof'" in done.stderr
        assert said is (rank == 0)
        assert ("profiles of 1 of 2 ranks written to 'out.dcrun'" in done.stderr) is (rank == 0)
        assert ("elapsed" in done.stderr) is (rank == 0)
        assert ("next: deepcontext report out.dcrun" in done.stderr) is (rank == 0)
    runs = [deepcontext.Profile.load(path).run for path in profiles(folder / "out.dcrun")]
    facts = [(run.rank, run.ranks, run.local_rank, run.rank_source) for run in runs]
    assert facts == [(0, 2, 0, "RANK"), (1, 2, 1, "RANK")]
    assert not (folder / "out.dcprof").exists()


def test_ranks_that_are_not_chosen_run_without_the_profiler(folder: Path) -> None:
    code = "import sys; print('deepcontext' in sys.modules)"
    done = [run_rank(folder, rank, "--ranks", "1,8-15", "-c", code) for rank in (0, 1)]
    assert [each.stdout for each in done] == ["False\n", "True\n"]
    assert done[0].stderr == ""
    assert "profiles of 1 of 2 ranks written to 'command.dcrun'" in done[1].stderr
    assert [path.name[:9] for path in profiles(folder / "command.dcrun")] == ["rank00001"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ""),
        ("one", "cannot read the ranks 'one': expected numbers and ranges"),
        ("0,", "as in 0,8-15, found ''"),
        ("-1", "found '-1'"),
        ("3-1", "the range '3-1' ends before it begins; write 1-3"),
        ("7,8-15", "cannot record the ranks '7,8-15': the job has 2 ranks, 0 to 1"),
    ],
)
def test_ranks_that_cannot_be_chosen_are_refused(folder: Path, text: str, message: str) -> None:
    done = run_rank(folder, 1, "-q", f"--ranks={text}", "train.py")
    assert done.returncode == (2 if message else 0)
    assert message in done.stderr
    assert (folder / "train.dcrun").exists() is (not message)


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, Rank(1, 2)),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "0"}, Rank(3, 4)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # a batch script
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Rank(1, 2)),
        ({"RANK": "high", "WORLD_SIZE": "2"}, None),
        ({"RANK": "1"}, None),
    ],
)
def test_rank_of_the_launcher(variables: dict[str, str], rank: Rank | None) -> None:
    assert current_rank(variables) == rank


def test_options_of_the_session_are_passed_on(folder: Path) -> None:
    run(folder, "-q", "--shapes", "--snapshot-interval", "2.5", "--node-limit", "500", "train.py")
    options = deepcontext.Profile.load(folder / "train.dcprof").run.options
    assert options["node_limit"] == "500"
    assert (options["shapes"], options["snapshot_interval_s"]) == ("True", "2.5")


def test_native_frames_are_asked_for_by_an_option(folder: Path) -> None:
    for flags, wanted in (((), "False"), (("--native",), "True")):
        run(folder, "-q", *flags, "train.py")
        profile = deepcontext.Profile.load(folder / "train.dcprof")
        assert profile.run.options["native"] == wanted
        (report,) = (c for c in profile.trust.collectors if c.name == "native frames")
        assert (report.status == "off") == (not flags)


def test_program_runs_unprofiled_when_the_profiler_cannot_start(folder: Path) -> None:
    (folder / "train.py").write_text(
        "import os; print(os.environ.get('PYTHONPATH')); raise SystemExit(3)", "utf-8"
    )
    options = LaunchOptions(output=str(folder / "gone" / "x.dcprof"), label="x.dcprof")
    command = profiled_command(Program(("train.py",)), options)
    done = subprocess.run(
        command.argv,
        env={**command.environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == f"{os.environ.get('PYTHONPATH')}\n"
    assert done.stderr.startswith("[deepcontext] the program runs unprofiled: ")
    assert done.stderr.count("\n") == 1


def test_program_ends_as_it_would_when_the_profile_cannot_be_written(folder: Path) -> None:
    (folder / "out").mkdir()
    source = "import shutil; shutil.rmtree('out'); raise SystemExit(3)"
    (folder / "train.py").write_text(source, encoding="utf-8")
    done = run(folder, "-o", "out/x.dcprof", "train.py")
    assert done.returncode == 3
    assert done.stderr.startswith("[deepcontext] no profile written: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_loses_only_what_came_after_the_last_snapshot(folder: Path) -> None:
    disk = folder / "out"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "deepcontext-test", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        (folder / "train.py").write_text(
            "import time, pathlib\n"
            "while not pathlib.Path('out/x.dcprof').exists(): time.sleep(0.01)\n"
            "try: pathlib.Path('out/full').write_bytes(bytes(1 << 20))\n"
            "except OSError: pass\n"
        )
        done = run(folder, "--snapshot-interval", "60", "-o", "out/x.dcprof", "train.py")
        assert done.returncode == 0
        assert done.stderr.startswith("[deepcontext] 'out/x.dcprof' ends with the last snapshot")
        assert "No space left on device" in done.stderr
        assert deepcontext.Profile.load(disk / "x.dcprof").run.exit_reason == "snapshot"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("import os; os.setuid(65534)", "Permission denied; choose a folder"),
        (
            "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
            "Too many open files; the program has as many files open as it may",
        ),
    ],
)
def test_what_a_program_may_not_do_any_more_leaves_the_last_snapshot(end: str, words: str) -> None:
    wait = "import time, pathlib\nwhile not pathlib.Path('x.dcprof').exists(): time.sleep(0.01)\n"
    with tempfile.TemporaryDirectory() as name:  # pytest's are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "train.py").write_text(wait + end, encoding="utf-8")
        done = run(folder, "--snapshot-interval", "60", "-o", "x.dcprof", "train.py")
        assert done.returncode == 0
        assert done.stderr.startswith("[deepcontext] 'x.dcprof' ends with the last snapshot")
        assert words in done.stderr
        assert deepcontext.Profile.load(folder / "x.dcprof").run.exit_reason == "snapshot"


def test_execution_that_fails_is_an_error_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "executable", str(folder / "no-python"))
    assert app.main(["profile", "train.py"]) == 4
    assert "cannot start" in capsys.readouterr().err
    monkeypatch.setattr(sys, "executable", "")
    assert app.main(["profile", "train.py"]) == 4
    assert "does not know its own executable" in capsys.readouterr().err


def test_check_raises_for_a_path_that_is_no_program(folder: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        Program((str(folder / "x.py"),)).check()
    Program(("-m", "no.such.module")).check()  # the interpreter reports the error


def test_the_program_is_given_no_large_modules(folder: Path) -> None:
    """Each one slows every start, and may have the name of a module of the program."""
    code = "import sys; print({'bz2', 'lzma', 'numpy', 'selectors', 'shutil', 'socket'} & sys.modules.keys())"
    done = run(folder, "-q", "-c", code)
    assert (done.returncode, done.stdout) == (0, "set()\n")


def test_the_program_does_not_import_what_only_its_children_need(folder: Path) -> None:
    launch = "deepcontext.profiler.recording.launch"
    names = [
        f"{launch}.{name}"
        for name in (
            *("children", "own_children", "ended_children", "missed_children", "python_words"),
            *("child_start", "launchers", "chosen_ranks"),
        )
    ]
    code = f"import sys; print([name for name in {names!r} if name in sys.modules])"
    done = run(folder, "-q", "--children", "frameworks", "-c", code)
    assert (done.returncode, done.stdout) == (
        0,
        f"['{launch}.children', '{launch}.own_children']\n",
    )
