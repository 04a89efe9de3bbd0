import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import deepcontext
from deepcontext import Profile, _native, errors


@pytest.fixture(autouse=True)
def no_session_left_behind() -> Iterator[None]:
    yield
    assert deepcontext._MANAGER.session is None
    assert not _native.is_recording()


def run(code: str, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=60,
        check=False,
    )


def entries(folder: str) -> int:
    return len(list(Path("/proc/self", folder).iterdir()))


def names(profile: Profile, kind: str) -> set[str]:
    return {node.frame.name for node in profile.query().kind(kind)}


def test_context_manager_writes_the_file_and_holds_the_result(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    running = deepcontext.profile(path)
    with running, deepcontext.scope("outer"), deepcontext.scope("inner"):
        pass
    assert running.result is not None
    assert names(running.result, "scope") == {"outer", "inner"}
    assert Profile.load(path).to_dict() == running.result.to_dict()
    assert list(tmp_path.iterdir()) == [path], "temporary files were left behind"


def test_a_start_that_fails_leaves_nothing_running(tmp_path: Path) -> None:
    program = """
import resource, sys
import deepcontext
from deepcontext import _native, errors
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as on a full disk
try:
    deepcontext.start(sys.argv[1])
except errors.EnvironmentProblem as error:
    print(error)
assert not _native.is_recording()
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
deepcontext.start(sys.argv[1])
with deepcontext.scope("second"):
    pass
deepcontext.stop()
"""
    path = tmp_path / "out.dcprof"
    done = run(program, str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"cannot write '{path}': ")
    assert names(Profile.load(path), "scope") == {"second"}


def test_any_number_of_failed_snapshots_is_one_note(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "out.dcprof"
    path.parent.mkdir()
    session = deepcontext.start(path, snapshot_interval=0)
    path.parent.rmdir()
    for _ in range(3):
        session._on_watcher()
    path.parent.mkdir()
    notes = deepcontext.stop().trust.notes
    (note,) = [note for note in notes if "snapshots could not be written" in note]
    assert note.startswith("3 ")
    assert "does not exist" in note


def test_a_snapshot_that_raises_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: dict[str, int] = {}
    session = deepcontext.start(tmp_path / "out.dcprof", snapshot_interval=0)
    with monkeypatch.context() as broken:
        broken.setattr(session, "_write", lambda _: nothing["key"])
        session._on_watcher()
    (note,) = [n for n in deepcontext.stop().trust.notes if "snapshots could not" in n]
    assert note.endswith("KeyError: 'key'")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_a_session_starts_does_not_end_its_sampling() -> None:
    program = """
import os
from deepcontext.collectors.cpu.sampling import CpuSampling
from deepcontext.collectors.python.frames import PythonFrames
from deepcontext.profiler.recording.options import SessionOptions
from deepcontext.profiler.recording.session_manager import SessionManager
import time

class Forking(PythonFrames):
    name = "another thread that forks"
    def start(self, options):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    def stop(self):
        pass

manager = SessionManager()
manager.start(None, SessionOptions(), [PythonFrames, CpuSampling, Forking])
end = time.thread_time() + 0.3
while time.thread_time() < end:
    sum(range(1000))
c = manager.stop().outcomes["cpu sampling"].counters
print(c["samples_running"] + c["samples_waiting"])
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5


def test_decorator_profiles_each_call(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"

    @deepcontext.profile(path)
    def work(label: str) -> str:
        with deepcontext.scope(label):
            return label

    assert work("first") == "first"
    assert work("second") == "second"
    assert names(Profile.load(path), "scope") == {"second"}


def test_profile_in_memory_needs_no_file() -> None:
    deepcontext.start()
    with deepcontext.scope("here"):
        pass
    assert names(deepcontext.stop(), "scope") == {"here"}


def test_scopes_and_steps_do_nothing_without_a_session() -> None:
    with deepcontext.scope("nobody looks"):
        deepcontext.step()


def test_scope_is_below_the_line_that_opened_it() -> None:
    deepcontext.start()
    with deepcontext.scope("training"):
        line = sys._getframe().f_lineno - 1
    profile = deepcontext.stop()
    (node,) = profile.query().kind("scope").nodes()
    opener = profile.path(int(node))[-2]
    assert (opener.name, opener.file, opener.line) == (
        "test_scope_is_below_the_line_that_opened_it",
        __file__,
        line,
    )


def test_steps_are_counted_and_timed() -> None:
    session = deepcontext.start()
    for _ in range(4):
        time.sleep(0.01)
        session.step()
    profile = deepcontext.stop()
    assert profile.run.steps == 4
    rows = profile.metrics["step_time_ns"]
    assert rows.count.tolist() == [3]
    assert rows.minimum is not None
    assert rows.minimum[0] >= 10_000_000


def test_second_start_names_the_running_session(tmp_path: Path) -> None:
    deepcontext.start(tmp_path / "first.dcprof")
    with pytest.raises(errors.SessionError, match=r"already running.*first\.dcprof"):
        deepcontext.start(tmp_path / "second.dcprof")
    deepcontext.stop()
    assert not (tmp_path / "second.dcprof").exists()


def test_nested_context_manager_leaves_the_outer_one_running(tmp_path: Path) -> None:
    with deepcontext.profile(tmp_path / "outer.dcprof"):
        with pytest.raises(errors.SessionError), deepcontext.profile(tmp_path / "inner.dcprof"):
            pass
        assert deepcontext._MANAGER.session is not None


def test_stop_without_start_is_refused() -> None:
    with pytest.raises(errors.SessionError, match="no session is running; start one first"):
        deepcontext.stop()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/out.dcprof", "folder '.*missing' does not exist; create it first"),
        (".", "it is a folder; name a file in it"),
    ],
)
def test_unwritable_path_is_refused_before_anything_starts(
    tmp_path: Path, path: str, message: str
) -> None:
    with pytest.raises(errors.UserError, match=message):
        deepcontext.start(tmp_path / path)


def test_exception_in_the_block_is_in_the_profile_and_propagates(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    with pytest.raises(ZeroDivisionError), deepcontext.profile(path):
        _ = 1 / 0
    assert Profile.load(path).run.exit_reason == "exception: ZeroDivisionError"


def test_sessions_do_not_see_each_other() -> None:
    for label in ("first", "second", "third"):
        deepcontext.start()
        with deepcontext.scope(label):
            pass
        assert names(deepcontext.stop(), "scope") == {label}


def test_live_threads_have_their_names_with_numbers_replaced() -> None:
    deepcontext.start(cpu_rate=0)
    barrier = threading.Barrier(3)

    def work() -> None:
        with deepcontext.scope("in thread"):
            barrier.wait()
        barrier.wait()

    threads = [threading.Thread(target=work, name=f"worker-{number}") for number in (7, 8)]
    for thread in threads:
        thread.start()
    barrier.wait()
    result = deepcontext.stop()
    barrier.wait()
    for thread in threads:
        thread.join()
    assert names(result, "thread") == {"worker-N"}


def test_threads_that_ended_share_one_frame() -> None:
    deepcontext.start(cpu_rate=0)

    def work() -> None:
        with deepcontext.scope("in thread"):
            pass

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    result = deepcontext.stop()
    assert names(result, "thread") == {"Thread"}
    (scope,) = result.query().kind("scope").nodes()
    assert int(result.counts("call_duration_ns")[scope]) == 20


def test_snapshot_is_a_readable_profile_of_the_running_session(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    session = deepcontext.start(path, snapshot_interval=0)
    with deepcontext.scope("before"):
        pass
    session.snapshot()
    snapshot = Profile.load(path)
    with deepcontext.scope("after"):
        pass
    deepcontext.stop()
    assert snapshot.run.exit_reason == "snapshot"
    assert names(snapshot, "scope") == {"before"}
    assert names(Profile.load(path), "scope") == {"before", "after"}


def test_importing_the_package_imports_no_framework_and_no_library() -> None:
    code = (
        "import sys, deepcontext\n"
        "heavy = {'torch', 'jax', 'flask', 'rich', 'numpy', 'google.protobuf'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert run(code).stdout.strip() == "[]"


def test_a_program_that_only_marks_scopes_loads_no_options() -> None:
    code = (
        "import sys, deepcontext\n"
        "with deepcontext.scope('evaluate'):\n"
        "    deepcontext.step()\n"
        "print([m for m in sys.modules if 'option' in m or m == 'deepcontext.session_start'])\n"
    )
    assert run(code).stdout.strip() == "[]"


def test_a_whole_session_imports_nothing_beyond_the_standard_library(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "before = set(sys.modules)\n"
        "import deepcontext\n"
        "deepcontext.start(sys.argv[1], snapshot_interval=0.05)\n"
        "time.sleep(0.3)\n"
        "deepcontext._MANAGER.stop()\n"
        "roots = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(r for r in roots - set(sys.stdlib_module_names) if r[0] != '_'))\n"
    )
    done = run(code, str(tmp_path / "out.dcprof"))
    assert done.stdout.strip() == "['deepcontext']", done


def test_forked_child_records_nothing_and_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    code = (
        "import os, sys, time, deepcontext\n"
        "deepcontext.start(sys.argv[1], snapshot_interval=0.05)\n"
        "child = os.fork()\n"
        "with deepcontext.scope('child' if child == 0 else 'parent'):\n"
        "    time.sleep(0.2)\n"
        "if child == 0:\n"
        "    assert deepcontext._MANAGER.session is None\n"
        "    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "deepcontext.stop()\n"
    )
    done = run(code, str(path))
    assert done.stdout.strip() == "7", done
    profile = Profile.load(path)
    assert names(profile, "scope") == {"parent"}
    assert profile.trust.counters["forked_children"] == 1


def test_fork_gives_no_new_warning_and_snapshots_continue(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    code = (
        "import os, sys, time, deepcontext\n"
        "deepcontext.start(sys.argv[1], snapshot_interval=0.05)\n"
        "for _ in range(5):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "with deepcontext.scope('late'):\n"
        "    pass\n"
        "time.sleep(0.5)\n"
        "os._exit(0)\n"
    )
    done = run(code, str(path), PYTHONWARNINGS="error")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(Profile.load(path), "scope") == {"late"}


def test_soon_after_the_start_snapshots_are_more_frequent_than_requested(tmp_path: Path) -> None:
    # A program that is killed half a minute after its start has lost at most half of that time.
    path = tmp_path / "out.dcprof"
    code = (
        "import os, signal, sys, time, deepcontext\n"
        "deepcontext.start(sys.argv[1], snapshot_interval=600)\n"
        "with deepcontext.scope('recorded'):\n"
        "    pass\n"
        "written = set()\n"
        "while len(written) < 4:\n"
        "    written.add(os.stat(sys.argv[1]).st_mtime_ns)\n"
        "    time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert run(code, str(path)).returncode == -signal.SIGTERM
    profile = Profile.load(path)
    assert profile.run.exit_reason == "snapshot"
    assert names(profile, "scope") == {"recorded"}


def test_a_session_changes_no_signal_but_the_samplers(tmp_path: Path) -> None:
    def caught() -> int:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        (line,) = (line for line in lines if line.startswith("SigCgt"))
        return int(line.split()[1], 16)

    before = caught()
    deepcontext.start(tmp_path / "out.dcprof")
    during = caught()
    deepcontext.stop()
    assert during & ~before == 1 << (signal.SIGURG - 1)
    assert caught() == before


def test_session_without_a_stop_is_written_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    code = (
        "import sys, deepcontext\n"
        "deepcontext.start(sys.argv[1], snapshot_interval=0)\n"
        "with deepcontext.scope('never stopped'):\n"
        "    pass\n"
    )
    assert run(code, str(path)).returncode == 0
    assert names(Profile.load(path), "scope") == {"never stopped"}


def test_start_and_stop_many_times_leaves_nothing_behind(tmp_path: Path) -> None:
    threads = entries("task")
    descriptors = entries("fd")
    for _ in range(10):
        deepcontext.start(tmp_path / "out.dcprof")
        deepcontext._MANAGER.stop()
    assert entries("task") == threads
    assert entries("fd") == descriptors


def test_trust_report_says_what_ran_and_what_did_not() -> None:
    deepcontext.start()
    profile = deepcontext.stop()
    statuses = {c.name: c.status.value for c in profile.trust.collectors}
    assert statuses["python"] == "ran"
    assert profile.trust.counters["backward_links_missed"] == 0


def test_names_with_counters_do_not_grow_the_tree() -> None:
    deepcontext.start()
    for step in range(5000):
        with deepcontext.scope(f"step {step} of 5000"):
            pass
    profile = deepcontext.stop()
    counts = profile.counts("call_duration_ns")
    scopes = profile.query().kind("scope")
    assert sum(int(counts[node]) for node in scopes.nodes()) == 5000
    assert len(names(profile, "scope")) <= 65
    assert "step N of N" in names(profile, "scope")
