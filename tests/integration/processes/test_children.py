"""Children of a profiled program: who has a profile, how it ended, and that nothing changed for them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from deepcontext.profiler.format import run_directory
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.processes import processes_of

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = (sys.executable, "-m", "deepcontext", "profile", "-q")
AS_RUN = ("-o", "job.dcrun")
# Each child says who it is, in its own way: by the name of an operator's scope.
STARTS = """
import multiprocessing, os, subprocess, sys
from concurrent.futures import ProcessPoolExecutor

CODE = "import torch, deepcontext\\nwith deepcontext.scope({!r}): torch.ones(2).sum()"

def work(name):
    import torch, deepcontext
    with deepcontext.scope(name):
        torch.ones(2).sum()

def start(name, *words, **options):
    subprocess.run([sys.executable, *words, "-c", CODE.format(name)], check=True, **options)

def main():
    work("program")
    for method in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(method).Process(target=work, args=(method,))
        child.start()
        child.join()
        assert child.exitcode == 0, method
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(work, "pool").result()
    start("subprocess")
    start("grandchild of a shell", shell=False)
    code = CODE.format("shell").replace("\\n", "; exec('''") + "''')"
    subprocess.run(f'cd / && "{sys.executable}" -c "{code}"', shell=True, check=True)
    subprocess.run([sys.executable, "-c", "print('no framework')"], check=True)
    start("isolated", "-I")
    start("without environment", env={})
    pid = os.fork()
    if pid == 0:
        work("bare fork")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    subprocess.run([sys.executable, "-c", "import sys; assert '.launch' not in str(sys.path)"], check=True)

if __name__ == "__main__":
    main()
"""
ENDS = """
import os, signal, subprocess, sys, time

def start(code):
    words = "import torch, os, sys, time\\n" + code
    return subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE)

SLEEP = "time.sleep(1); print('ready', flush=True); time.sleep(600)"
ends = {
    "returns": start(""),
    "exits": start("sys.exit(3)"),
    "raises": start("sys.stderr = open(os.devnull, 'w'); raise KeyError('x')"),
    "_exit": start("time.sleep(1); os._exit(4)"),
    "SIGTERM": start(SLEEP),
    "SIGKILL": start(SLEEP),
}
for name in ("SIGTERM", "SIGKILL"):
    ends[name].stdout.readline()
    ends[name].send_signal(getattr(signal, name))
print({name: child.wait() for name, child in ends.items()})
"""


def run(
    folder: Path, program: str, *options: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    (folder / "job.py").write_text(program, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [*PROFILE, *options, "job.py"],
        cwd=folder,
        env={**environment, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done, folder / "job.dcrun"


def scopes(run: Path) -> dict[str, Profile]:
    """Return the profiles by the scope that each process gave itself."""
    found = {}
    for path in run_directory.profiles(run):
        profile = Profile.load(path)
        names = {
            profile.frame(node).name for node in profile.query().kind("scope").nodes().tolist()
        }
        found[", ".join(sorted(names))] = profile
    return found


@pytest.mark.long
def test_children_that_use_a_framework_have_profiles(tmp_path: Path) -> None:
    done, run_ = run(tmp_path, STARTS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "no framework\n"
    found = scopes(run_)
    assert found.keys() == {
        *("program", "fork", "spawn", "forkserver", "pool", "subprocess"),
        *("grandchild of a shell", "shell"),
    }
    for profile in found.values():
        assert profile.run.exit_reason == "exit"
        # On a busy machine a sample may have no line, which is a note, and the two children without a
        # profile live long enough to be noticed.
        notes = [note for note in profile.trust.notes if not note.startswith("not recorded: ")]
        assert not [note for note in notes if "recorded" in note or "error" in note]
        assert profile.query().name("aten::sum").total("host_time_ns") > 0
    assert found["fork"].run.process_name == "ForkProcess-1"
    assert found["subprocess"].run.parent_pid == found["program"].run.pid
    assert stat.S_IMODE(run_.stat().st_mode) == 0o700


COLLECTIONS = """
import gc, multiprocessing, sys, torch

def note(phase, info):
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_begin_in_forked_child":
            print("collected while a session started", flush=True)
        frame = frame.f_back

child = multiprocessing.get_context("fork").Process(target=lambda: print(gc.isenabled(), flush=True))
gc.set_threshold(5)
gc.callbacks.append(note)
child.start()
child.join()
"""


@pytest.mark.long
def test_no_garbage_of_the_parent_is_collected_where_a_forked_child_begins(tmp_path: Path) -> None:
    done, run_ = run(tmp_path, COLLECTIONS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert len(run_directory.profiles(run_)) == 2


IMPORTED_IN_CHILDREN = """
import multiprocessing, os, sys, threading

def use_torch(name):
    import torch, deepcontext
    with deepcontext.scope(name):
        torch.ones(2).sum()

def use_jax():
    import jax, deepcontext
    with deepcontext.scope("jax"):
        jax.jit(lambda x: x + 1)(1.0).block_until_ready()

def use_in_a_thread():
    thread = threading.Thread(target=use_torch, args=("thread",))
    thread.start()
    thread.join()

def start(work, *arguments, daemon=False):
    child = fork.Process(target=work, args=arguments, daemon=daemon)
    child.start()
    child.join()
    assert child.exitcode == 0, work

def use_in_grandchild():
    start(use_torch, "grandchild")
    pid = os.fork()
    if pid == 0:
        use_torch("bare fork")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

multiprocessing.set_start_method("spawn")
fork = multiprocessing.get_context("fork")
if __name__ == "__main__":
    start(use_torch, "daemonic", daemon=True)
    start(use_jax)
    start(use_in_a_thread)
    start(use_in_grandchild)
    start(len, "no framework")
    with fork.Pool(1) as pool:
        pool.apply(use_torch, ("pool",))
        pool.close()
        pool.join()
    print([name for name in ("torch", "jax") if name in sys.modules])
"""


@pytest.mark.long
def test_a_forked_child_that_imports_the_framework_itself_has_a_profile(tmp_path: Path) -> None:
    done, run_ = run(tmp_path, IMPORTED_IN_CHILDREN)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    found = scopes(run_)
    program = found.pop("")
    assert found.keys() == {"daemonic", "jax", "thread", "grandchild", "pool"}
    assert Counter(each.run.exit_reason for each in found.values()) == {"exit": 5}
    for name, profile in found.items():
        metric = "program_launch_count" if name == "jax" else "host_time_ns"
        assert profile.exclusive(metric).sum() > 0
        assert profile.run.process_name.startswith("Fork")
    assert found["daemonic"].run.parent_pid == program.run.pid


@pytest.mark.long
def test_a_child_that_uses_jax_has_a_profile(tmp_path: Path) -> None:
    code = "import jax\nf = jax.jit(lambda x: (x @ x).sum())\nfor _ in range(20): f(jax.numpy.ones((9, 9)))"
    done, run_ = run(
        tmp_path,
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)\n",
    )
    assert (done.returncode, done.stderr) == (0, "")
    _, child = (Profile.load(path) for path in run_directory.profiles(run_))
    assert not [note for note in child.trust.notes if "error" in note]
    assert int(child.exclusive("program_launch_count").sum()) >= 20


@pytest.mark.processes
def test_however_a_child_ends_its_profile_is_there(tmp_path: Path) -> None:
    done, run_ = run(tmp_path, ENDS)
    assert done.stderr == ""
    ends = {"returns": 0, "exits": 3, "raises": 1, "_exit": 4, "SIGTERM": -15, "SIGKILL": -9}
    assert json.loads(done.stdout.replace("'", '"')) == ends
    found = Counter(Profile.load(path).run.exit_reason for path in run_directory.profiles(run_))
    assert found == {"exit": 4, "snapshot": 3}  # the program is one of the four


@pytest.mark.long
def test_a_child_may_record_itself(tmp_path: Path) -> None:
    code = (
        "import torch, deepcontext\n"
        "with deepcontext.profile('own.dcprof'): torch.ones(2).sum()\n"
        "with deepcontext.profile('again.dcprof'): torch.ones(2).sum()"
    )
    done, run_ = run(
        tmp_path,
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)\n",
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("own", "again"):
        assert (
            Profile
            .load(tmp_path / f"{name}.dcprof")
            .query()
            .name("aten::sum")
            .total("host_time_ns")
            > 0
        )
    ends = Counter(Profile.load(path).run.exit_reason for path in run_directory.profiles(run_))
    assert ends == {"exit": 1, "the program started its own session": 1}


def test_children_see_the_program_s_own_pythonpath_and_sitecustomize(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\nsys.is_customised = True\n", encoding="utf-8"
    )
    child = "import sys; print(sys.is_customised, sys.path.count(sys.argv[1]))"
    words = f"[sys.executable, '-c', {child!r}, {str(folder)!r}]"
    program = f"import subprocess, sys\nsubprocess.run({words}, check=True)\n"
    done, _ = run(tmp_path, program, PYTHONPATH=str(folder))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 1\n", "")


@pytest.mark.long
def test_what_starts_the_profiler_in_a_child_is_no_line_of_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import os\nif 'IS_CHILD' in os.environ:\n    import torch\n    torch.ones(2).sum()\n",
        encoding="utf-8",
    )
    words = "[sys.executable, '-c', 'pass'], env={**os.environ, 'IS_CHILD': ''}"
    program = f"import os, subprocess, sys\nsubprocess.run({words}, check=True)\n"
    done, run_ = run(tmp_path, program, PYTHONPATH=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    profiles = [Profile.load(path) for path in run_directory.profiles(run_)]
    (child,) = [each for each in profiles if len(each.query().name("aten::sum"))]
    files = {frame.file for node in child.query().name("aten::sum") for frame in node.path}
    assert str(folder / "sitecustomize.py") in files
    assert not any(".launch" in file for file in child.frames.strings)


@pytest.mark.usefixtures("known_by_name")
def test_a_child_that_cannot_record_runs_on(tmp_path: Path) -> None:
    child = f"{RECORDED}; print('ran')"
    program = (
        "import pathlib, subprocess, sys\n"
        "pathlib.Path('job.dcrun/.launch/options.json').write_text('{')\n"
        "log = open('log', 'w')\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True, stderr=log)\n"
    )
    done, _ = run(tmp_path, program)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert (tmp_path / "log").read_text(encoding="utf-8") == ""
    assert re.fullmatch(
        r"\[deepcontext\] not recorded: process \d+: JSONDecodeError: .*\n", done.stderr
    )


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_run_directory_is_not_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "job.dcrun"
    if kind == "file":
        target.write_text("mine", encoding="utf-8")
    else:
        target.mkdir()
        (target / "mine").write_text("mine", encoding="utf-8")
    done, _ = run(tmp_path, "print('ran')\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write 'job.dcrun'" in done.stderr or str(target) in done.stderr
    assert (target if kind == "file" else target / "mine").read_text(encoding="utf-8") == "mine"


def test_an_older_run_is_replaced_and_foreign_files_in_it_stay(tmp_path: Path) -> None:
    run(tmp_path, "print('ran')\n", *AS_RUN)
    (first,) = run_directory.profiles(tmp_path / "job.dcrun")
    (first.parent / "notes.txt").write_text("mine", encoding="utf-8")
    run(tmp_path, "print('ran')\n", *AS_RUN)
    (second,) = run_directory.profiles(tmp_path / "job.dcrun")
    assert first != second
    assert (first.parent / "notes.txt").read_text(encoding="utf-8") == "mine"


RECORDED = "import torch"
CHILD = (
    f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {RECORDED!r}], check=True)\n"
)


@pytest.fixture
def known_by_name(tmp_path: Path) -> None:
    """A framework is known by the name of its module: an empty one takes no seconds to import."""
    (tmp_path / "torch.py").touch()


def test_a_program_that_is_one_process_writes_one_profile(tmp_path: Path) -> None:
    (tmp_path / "job.dcrun").mkdir()
    done, run_ = run(tmp_path, "import subprocess\nsubprocess.run(['true'], check=True)\n")
    assert (done.returncode, run_.exists()) == (0, False)
    assert Profile.load(tmp_path / "job.dcprof").run.exit_reason == "exit"


@pytest.mark.usefixtures("known_by_name")
@pytest.mark.parametrize("output", ["", "job.dcprof", "job.dcrun"])
def test_a_program_with_children_is_found_in_the_run_directory(tmp_path: Path, output: str) -> None:
    done, run_ = run(tmp_path, CHILD, *(["-o", output] if output else []))
    assert (done.returncode, done.stderr) == (0, "")
    program, child = (Profile.load(path).run for path in run_directory.profiles(run_))
    assert child.parent_pid == program.pid
    assert (tmp_path / "job.dcprof").exists() == (output == "job.dcprof")


@pytest.mark.usefixtures("known_by_name")
def test_a_killed_program_is_found_from_the_run_directory(tmp_path: Path) -> None:
    done, run_ = run(tmp_path, f"{CHILD}import os\nos.kill(os.getpid(), 9)\n")
    assert done.returncode == -9
    program, child = (Profile.load(path).run for path in run_directory.profiles(run_))
    assert (program.exit_reason, child.parent_pid) == ("snapshot", program.pid)
    report = subprocess.run(
        [sys.executable, "-m", "deepcontext", "report", "job.dcprof"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "crashed, killed, or ended by os._exit, after the last snapshot" in " ".join(
        report.stdout.split()
    )
    assert (tmp_path / "job.dcprof").exists()


@pytest.mark.usefixtures("known_by_name")
def test_a_profiled_program_may_profile_another(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(CHILD, encoding="utf-8")
    words = "[sys.executable, '-m', 'deepcontext', 'profile', '-q', 'inner.py']"
    outer = f"import subprocess, sys\nsubprocess.run({words}, check=True)\n"
    done, run_ = run(tmp_path, outer)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(run_directory.profiles(tmp_path / "inner.dcrun")) == 2
    assert not run_.exists()
    assert (tmp_path / "job.dcprof").exists()


ALL = """
import os, subprocess, sys, deepcontext
subprocess.run([sys.executable, "-c", "print('plain')"], check=True)
subprocess.run([sys.executable, "other.py"], check=True)
subprocess.run(["true"], check=True, preexec_fn=int)
for end in (sys.exit, os._exit):
    pid = os.fork()
    if pid == 0:
        with deepcontext.scope(f"fork {end.__name__}"): sum(range(2000000))
        __import__("time").sleep(0.7)
        end(3)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_children_all_records_plain_interpreters_and_bare_forks(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("print('own queue')", encoding="utf-8")
    (tmp_path / "other.py").write_text("import queue", encoding="utf-8")
    done, run_ = run(tmp_path, ALL, "--children", "all")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.split("\n")) == ["", "3", "3", "own queue", "plain"]
    found = [Profile.load(path) for path in run_directory.profiles(run_)]
    assert Counter(each.run.exit_reason for each in found) == {"exit": 4, "snapshot": 1}
    assert {"fork exit", "fork _exit"} <= scopes(run_).keys()


# Each starts a daemon, which becomes a Python program after the job's program has ended.
WAITS = 'read ended < ended; exec "$0" -c "import torch"'
DAEMONS = {
    "setsid": "subprocess.Popen(['setsid', 'nohup', *words], stdout=log, stderr=log)",
    "shell": "subprocess.run(['sh', '-c', '\"$@\" &', 'sh', *words], stdout=log, stderr=log)",
    "double fork": (
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.dup2(log.fileno(), 1)\n"
        "        os.dup2(log.fileno(), 2)\n"
        "        os.execvp(words[0], words)\n"
        "    os._exit(0)\n"
        "os.wait()"
    ),
}


@pytest.mark.usefixtures("known_by_name")
@pytest.mark.parametrize("command", [(), ("sh", "-c", '"$0" job.py', sys.executable)], ids=len)
@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_a_daemon_joins_its_job_when_it_begins_to_record(
    tmp_path: Path, daemon: str, command: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "ended")
    words = ["sh", "-c", WAITS, sys.executable]
    program = f"import os, subprocess\nwords = {words}\nlog = open('log', 'w')\n{daemon}\n"
    (tmp_path / "job.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [*PROFILE[:-1], "-o", "job.dcprof", "--no-report", *(command or ["job.py"])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert (
        "1 process of this job still runs; the profile of this process is added to" in done.stderr
    )
    run_ = tmp_path / "job.dcrun"
    own = run_directory.profiles(run_)
    assert [path.name for path in own] == ([] if command else ["job.dcprof"])
    (tmp_path / "ended").write_text("\n", encoding="utf-8")
    children: list[Profile] = []
    while [each.run.exit_reason for each in children] != ["exit"]:
        found = [path for path in run_directory.profiles(run_) if path not in own]
        children = [Profile.load(path) for path in found]
    if own:
        assert children[0].run.parent_pid == Profile.load(own[0]).run.pid
    assert (tmp_path / "log").read_text(encoding="utf-8") == ""


def test_a_child_whose_run_directory_is_removed_runs_on_in_silence(tmp_path: Path) -> None:
    child = (
        "import shutil, deepcontext\n"
        "shutil.rmtree('job.dcrun')\n"
        "deepcontext._MANAGER.session.snapshot()\n"
        "print('done')\n"
    )
    program = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    )
    done, run_ = run(tmp_path, program, "--children", "all", "--snapshot-interval", "600")
    assert (done.returncode, done.stdout, run_.exists()) == (0, "done\n", False)
    told = [line for line in done.stderr.splitlines() if "'job.dcrun' is incomplete" not in line]
    assert told == []


MIDDLE = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {RECORDED!r}], check=True)"


@pytest.mark.usefixtures("known_by_name")
def test_a_grandchild_is_below_the_nearest_process_with_a_profile(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        f"subprocess.run(['sh', '-c', '\"$0\" -c \"$1\"; true', sys.executable, {MIDDLE!r}], check=True)\n"
    )
    done, run_ = run(tmp_path, program)
    assert (done.returncode, done.stderr) == (0, "")
    told = processes_of([Profile.load(path) for path in run_directory.profiles(run_)])
    assert [(each.role.value, each.depth) for each in told] == [("program", 0), ("child", 1)]


@pytest.mark.usefixtures("known_by_name")
def test_a_profile_is_named_by_the_rank_or_role_of_its_process(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys\n"
        "ranked = {**os.environ, 'RANK': '3', 'WORLD_SIZE': '4'}\n"
        f"subprocess.run([sys.executable, '-c', {RECORDED + '; ' + MIDDLE!r}], env=ranked, check=True)\n"
    )
    done, run_ = run(tmp_path, program)
    assert (done.returncode, done.stderr) == (0, "")
    names = [path.name for path in run_directory.profiles(run_)]
    assert [name.rpartition("-")[0].rstrip("0123456789") for name in names] == [
        *("program-", "rank00003-", ""),  # a child of the rank has the same variables
    ]


@pytest.mark.usefixtures("known_by_name")
def test_what_children_import_is_no_part_of_the_run_directory(tmp_path: Path) -> None:
    """A child that wrote bytecode while the directory is removed would make the directory again."""
    program = (
        f"import os, pathlib, torch\n{CHILD}shim, launch = os.environ['PYTHONPATH'].split(':')\n"
        "print('shim', shim)\nprint(*sorted(pathlib.Path(launch).rglob('*')), sep='\\n')\n"
    )
    done, _ = run(tmp_path, program)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.rpartition("/")[2] for line in lines if "/.launch/" in line] == ["options.json"]
    assert str(tmp_path) not in next(line for line in lines if line.startswith("shim "))


@pytest.mark.usefixtures("known_by_name")
def test_a_child_that_starts_after_the_end_finds_nothing_and_makes_nothing(tmp_path: Path) -> None:
    program = "import os\nwith open('keep', 'w') as file: file.write(os.environ['PYTHONPATH'])\n"
    done, run_ = run(tmp_path, program)
    assert (done.returncode, run_.exists()) == (0, False)
    path = (tmp_path / "keep").read_text(encoding="utf-8")
    late = subprocess.run(
        [sys.executable, "-c", "import sys, torch; print(*sys.path)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (late.returncode, late.stderr, run_.exists()) == (0, "", False)
    assert not set(late.stdout.split()) & set(path.split(os.pathsep))


@pytest.mark.usefixtures("known_by_name")
def test_children_none_hides_the_profiler_from_children(tmp_path: Path) -> None:
    program = f"import os\nassert 'PYTHONPATH' not in os.environ\n{CHILD}"
    done, run_ = run(tmp_path, program, "--children", "none")
    assert (done.returncode, done.stderr, run_.exists()) == (0, "", False)


def test_a_profile_that_the_user_keeps_in_a_run_directory_stays(tmp_path: Path) -> None:
    run(tmp_path, "print('ran')\n", *AS_RUN)
    (first,) = run_directory.profiles(tmp_path / "job.dcrun")
    best = first.parent / "best.dcprof"
    best.write_bytes(first.read_bytes())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked = elsewhere / first.name
    linked.write_bytes(first.read_bytes())
    (elsewhere / "job").write_text("mine", encoding="utf-8")
    (tmp_path / "job.dcrun" / "link").symlink_to(elsewhere)
    run(tmp_path, "print('ran')\n", *AS_RUN)
    assert best.exists()
    assert linked.exists()
    assert (elsewhere / "job").exists()
    assert not first.exists()


@pytest.mark.processes
def test_forked_children_beyond_the_ceiling_are_told(tmp_path: Path) -> None:
    program = (
        "import multiprocessing, os, torch\n"
        "context = multiprocessing.get_context('fork')\n"
        "for _ in range(67):\n"
        "    child = context.Process(target=int)\n"
        "    child.start()\n"
        "    child.join()\n"
        "    assert child.exitcode == 0\n"
    )
    done, run_ = run(tmp_path, program, "--cpu-rate", "0", "--no-memory")
    assert (done.returncode, done.stderr) == (0, "")
    found = [Profile.load(path) for path in run_directory.profiles(run_)]
    assert len(found) == 1 + 64
    (note,) = [note for note in found[0].trust.notes if "not recorded" in note]
    assert note.startswith("3 forked child processes")


@pytest.mark.usefixtures("known_by_name")
def test_children_of_a_host_beyond_the_ceiling_run_unrecorded_and_are_told(tmp_path: Path) -> None:
    program = (
        "import multiprocessing, pathlib, torch\n"
        "from deepcontext.profiler.format import run_directory\n"
        "for _ in range(511): assert run_directory.claim(pathlib.Path('job.dcrun'))\n"
        "context = multiprocessing.get_context('fork')\n"
        "for _ in range(3):\n"
        "    child = context.Process(target=int)\n"
        "    child.start()\n"
        "    child.join()\n"
        "    assert child.exitcode == 0\n"
    )
    done, run_ = run(tmp_path, program, "--cpu-rate", "0", "--no-memory")
    assert (done.returncode, done.stderr) == (0, "")
    told = "2 processes (2 more were not recorded: 512 children of a host are)"
    assert run_directory.count_text(run_) == f"profiles of {told}"
    report = subprocess.run(
        [sys.executable, "-m", "deepcontext", "report", str(run_)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"holds the profiles of {told}; what follows" in report.stderr
    done, _ = run(tmp_path, CHILD, "--cpu-rate", "0", "--no-memory")
    assert run_directory.count_text(run_) == "profiles of 2 processes"


def test_children_that_ask_at_once_are_counted_exactly(tmp_path: Path) -> None:
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            os._exit(sum(run_directory.claim(tmp_path) for _ in range(80)))
        children.append(child)
    assert sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children) == 512
    assert run_directory.left_out_text(tmp_path).startswith(" (128 more")


@pytest.mark.long
def test_merging_a_run_leaves_out_what_is_no_rank(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import torch; torch.ones(2).sum()']"
    variables = "{**os.environ, 'RANK': str(rank), 'WORLD_SIZE': '2'}"
    program = (
        "import os, subprocess, sys\n"
        f"ranks = [subprocess.Popen({child}, env={variables}) for rank in range(2)]\n"
        "assert not any(rank.wait() for rank in ranks)\n"
    )
    _, run_ = run(tmp_path, program)
    done = subprocess.run(
        [sys.executable, "-m", "deepcontext", "merge", "-o", "job.dcprof", str(run_)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "[deepcontext] left out: 1 processes that are not ranks\n"
    assert Profile.load(tmp_path / "job.dcprof").run.ranks == 2


@pytest.mark.long
def test_commands_take_a_run_directory(tmp_path: Path) -> None:
    _, run_ = run(tmp_path, "import torch\ntorch.ones(2).sum()\n", *AS_RUN)
    other = run_directory.profiles(run_)[0]
    (other.parent / "0000001-1.dcprof").write_bytes(other.read_bytes())
    for words in (
        ["report"],
        ["report", "--json"],
        ["analyze"],
        ["export", "--format", "collapsed", "-o", "-"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "deepcontext", *words, str(run_)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "holds the profiles of 2 processes" in done.stderr
        assert ("Processes (2)" in done.stdout) == (words == ["report"])
