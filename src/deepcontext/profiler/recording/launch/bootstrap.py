"""Run a session around a whole program, from inside its interpreter.

`begin` is called by `path/sitecustomize.py` before the program's first line, `finish` by `atexit`
after its last. Does not measure and does not render. Invariant: whatever goes wrong here, the
program runs and ends as it does without the profiler.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deepcontext import _native
from deepcontext.errors import DeepContextError, EnvironmentProblem
from deepcontext.profiler.format import run_directory, writing
from deepcontext.profiler.format.own_os import os
from deepcontext.profiler.recording import clock
from deepcontext.profiler.recording.descriptors import with_descriptors
from deepcontext.profiler.recording.launch.options import LaunchOptions
from deepcontext.profiler.recording.launch.shadowing import hide_shadowed
from deepcontext.profiler.recording.launch.short_report import print_short_report
from deepcontext.profiler.recording.launch.standard_error import StandardError
from deepcontext.profiler.recording.rank import current_rank, may_be_restarted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from deepcontext.profiler.recording.capture import Capture
    from deepcontext.profiler.recording.collector import Collector
    from deepcontext.profiler.recording.launch.children import ChildFollower
    from deepcontext.profiler.recording.session import Session

__all__ = ["LaunchOptions", "Recorder", "begin"]  # what the shim needs

_TIMINGS: Final = writing.FileKind.beginning_with("a record of times", b'{"start_ns": ')


@dataclass(frozen=True, slots=True)
class Recorder:
    """What the launcher needs from the layers above.

    Attributes:
        start: starts the process's session.
        stop: stops the session, with the reason why the program ended, and writes its profile. Loads
            no module that the program has not loaded.
        discard: stops the session and removes its file.
        collectors: makers of the sources that sessions of forked children start.
    """

    start: Callable[[LaunchOptions], Session]
    stop: Callable[[str], Capture]
    discard: Callable[[], None]
    collectors: Sequence[Callable[[], Collector]]


def begin(
    recorder: Recorder,
    options: LaunchOptions,
    *,
    known_modules: frozenset[str],
    package_root: str,
    begun_ns: int,
) -> None:
    """Start the session and make sure that it ends with the program.

    Args:
        recorder: starts and stops the session.
        options: how the session is set up.
        known_modules: names that were in `sys.modules` before the profiler loaded anything.
        package_root: folder that holds the package `deepcontext`.
        begun_ns: when the profiler's start began, by `clock.monotonic_ns`.
    """
    launch = _Launch(recorder, options, package_root)
    # Registered before the session starts, so that `finish` runs after handlers registered later.
    atexit.register(_native.without_tracing, launch.finish)
    try:
        launch.start(begun_ns)
        launch.follow_children()
    except BaseException:
        atexit.unregister(_native.without_tracing)
        launch.fail()
        raise
    finally:
        hide_shadowed(options.import_folder, known_modules)


class _Launch:
    """The session of a launched program, from `begin` to the end of the process."""

    def __init__(self, recorder: Recorder, options: LaunchOptions, package_root: str) -> None:
        self._recorder = recorder
        self._options = options
        self._package_root = package_root
        self._pid = os.getpid()
        # Copied now, because the program may change them.
        self._environment = dict(os.environ)
        self._executable = sys.executable
        self._stderr = StandardError()
        self._earlier_file = _identity_of(options.output)
        self._start_ns = 0
        self._session: Session | None = None
        self._follower: ChildFollower | None = None
        self._role = "program"  # in the name of its profile

    def start(self, begun_ns: int) -> None:
        """Start the session."""
        if self._options.strict:
            _native.set_exit_status(0)  # registers its handler first, so that it runs last
        self._session = self._recorder.start(self._options)
        self._start_ns = clock.monotonic_ns() - begun_ns

    def follow_children(self) -> None:
        """Record children that `multiprocessing` forks; others find the run directory themselves."""
        if self._options.run:
            from deepcontext.profiler.recording.launch import children  # noqa: PLC0415  if asked for

            note = {
                "run": self._options.run,
                "children": self._options.children,
                "session": asdict(self._options.session),
            }
            self._follower = children.ChildFollower(note, self._recorder.collectors)
            self._follower.install()
            if self._session is not None:
                self._follower.expect_children(self._session)

    def finish(self) -> None:
        """Stop the session, write the profile and say where; do nothing in a forked child."""
        if os.getpid() != self._pid:
            return
        try:
            if _has_begun():
                self._finish()
            else:
                self._discard()
        except KeyboardInterrupt:
            self._stderr.say("interrupted while the profile was being written")
            self.fail()
        except Exception as error:  # noqa: BLE001  the program's exit status must not change
            self._stderr.say(self._failure(error))
            self._remove_unused_run()
            self.fail()

    def fail(self) -> None:
        """With --strict, make a program that succeeds end with an error."""
        if self._options.strict:
            _native.set_exit_status(EnvironmentProblem.exit_code)

    def _failure(self, error: Exception) -> str:
        reason = f"{type(error).__name__}: {error}"
        # A file that may no longer be written to was given up for another name, which may not exist.
        for output, label in (self._written(), (self._options.output, self._options.label)):
            if _identity_of(output) not in {None, self._earlier_file}:
                left = "ends with the last snapshot, because the rest could not be written"
                return f"'{label}' {left}: {reason}"
        return f"no profile written: {reason}"

    def _finish(self) -> None:
        begun_ns = clock.monotonic_ns()
        capture = self._recorder.stop(_exit_reason())
        errors = capture.errors
        if errors:
            self.fail()
        if capture.rank is not None:
            self._role = run_directory.rank_name(capture.rank.number)
        self._write_timings(clock.monotonic_ns() - begun_ns)
        left = with_descriptors(self._left_running)
        run = self._options.run
        failures = run_directory.failure_notes(Path(run)) if run else ()
        what, output, label = with_descriptors(lambda: self._settle(is_waited_for=bool(left)))
        said = (*errors, *(self._session.file_notes if self._session else ()), *failures)
        if said or not self._options.quiet:
            _flush_stdout()
        for text in said:
            self._stderr.say(text)
        if self._options.quiet or self._will_be_restarted():
            return
        self._stderr.say(f"{what} written to '{label}'")
        if self._options.report and self._stderr.has_room():
            print_short_report(output, self._environment, self._executable, self._package_root)
        self._stderr.say(*left)
        self._stderr.say(f"next: deepcontext report {shlex.quote(label)}")

    def _write_timings(self, stop_ns: int) -> None:
        if self._options.timings:
            timings = {"start_ns": self._start_ns, "stop_ns": stop_ns}
            writing.write(json.dumps(timings).encode(), self._options.timings, _TIMINGS)

    def _left_running(self) -> Sequence[str]:
        """Return what to say of processes that run and may still begin to record."""
        if self._follower is None or not self._follower.has_seen_child:
            return ()
        from deepcontext.profiler.recording.launch import left_running  # noqa: PLC0415  if needed

        return left_running.told(Path(self._options.run), self._options.run_label)

    def _will_be_restarted(self) -> bool:
        return (
            bool(self._options.job)
            and _exit_reason() != "exit"
            and may_be_restarted(self._environment)
        )

    def _settle(self, *, is_waited_for: bool) -> tuple[str, str, str]:
        """Move the profiles of the job to their final place.

        Args:
            is_waited_for: whether processes run that may begin to record.

        Returns:
            what was written, its absolute path, and the path as the user would type it.
        """
        output, label = self._written()
        if self._options.job:
            return f"profiles of {self._ranks()} ranks", output, self._options.label
        if not self._options.run:
            return "profile", output, label
        run, run_label = Path(self._options.run), self._options.run_label
        try:
            if run not in Path(output).parents:
                if not run_directory.is_used(run):
                    if not is_waited_for:
                        run_directory.remove(run)
                    return "profile", output, label
                run_directory.adopt(
                    run, Path(output), role=self._role, is_kept=self._options.is_kept
                )
            return run_directory.count_text(run), str(run), run_label
        except (OSError, DeepContextError) as error:  # the program may have removed the directory
            self._stderr.say(f"'{run_label}' is incomplete: {type(error).__name__}: {error}")
            return "profile", output, label

    def _discard(self) -> None:
        self._recorder.discard()
        self._remove_unused_run()
        if not self._options.quiet:
            self._stderr.say("no profile written: the program did not begin")

    def _remove_unused_run(self) -> None:
        run, folder = Path(self._options.run), Path(self._options.output).parent
        if not self._options.run or self._options.job:
            return
        with contextlib.suppress(OSError, DeepContextError):
            if run in folder.parents and not any(folder.iterdir()):
                folder.rmdir()
            if not run_directory.is_used(run):
                run_directory.remove(run)

    def _ranks(self) -> str:
        """Return how many ranks have profiles: ``3 of 4``, ``4``."""
        count = run_directory.rank_count(Path(self._options.job))
        rank = current_rank(self._environment)
        return f"{count} of {rank.of}" if rank and count < rank.of else str(count)

    def _written(self) -> tuple[str, str]:
        """Return the path of the profile, absolute and as the user would type it."""
        path = self._session.path if self._session else None
        if path is None or str(path) == self._options.output:
            return self._options.output, self._options.label
        return str(path), str(Path(self._options.label).with_name(path.name))


def _has_begun() -> bool:
    """Return whether a line of the program ran; False for a missing module or a syntax error."""
    kind = getattr(sys, "last_type", None)
    is_refused = isinstance(kind, type) and issubclass(kind, SyntaxError)
    # runpy replaces "-m" by the file of the module right before it runs the module.
    if not is_refused and getattr(sys, "argv", [])[:1] != ["-m"]:
        return True
    traceback = getattr(sys, "last_traceback", None)
    while traceback is not None and _is_of_interpreter(traceback):
        traceback = traceback.tb_next
    return traceback is not None


def _is_of_interpreter(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith("<frozen ")


def _exit_reason() -> str:
    # Set by the interpreter when it prints the exception that ends the program.
    kind = getattr(sys, "last_type", None)
    return f"exception: {kind.__name__}" if isinstance(kind, type) else "exit"


def _identity_of(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _flush_stdout() -> None:
    # Output of the program comes before that of the profiler. If this flush fails, the interpreter's
    # flush fails next and reports it.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
