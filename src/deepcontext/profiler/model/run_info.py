"""What was run, on what, for how long.

Does not collect these facts (the session does) or judge them (`trust.py`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ALL_RANKS: Final = -1
_LONGEST_CODE: Final = 100


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run of a program under the profiler; "" and 0 mean unknown.

    Attributes:
        command: the program's argument vector.
        script: the script, ``-m module`` or ``-c`` as given; "" for the API in a running program.
        cwd: working directory at the start; views show paths relative to it.
        python: implementation and version, for example ``CPython 3.11.2``.
        platform: operating system, release and machine.
        hostname: name of the machine.
        cpu_model: model name of the processor.
        cpu_count: number of processors the process may use.
        frameworks: version by framework name, for frameworks that the program imported.
        start_unix_ns: start of the session, ns since 1970-01-01 UTC.
        wall_ns: elapsed time of the session, ns.
        cpu_user_ns: user CPU time of the process during the session, ns.
        cpu_system_ns: system CPU time of the process during the session, ns.
        peak_rss_bytes: largest resident set of the process, bytes.
        pid: process id.
        exit_reason: ``exit``, ``snapshot``, ``exception: ...``.
        steps: number of training or inference steps marked.
        options: the profiler's settings by name.
        rank: number of this process in its job, from 0; `ALL_RANKS` in a merged profile, where times
            and memory are sums over the processes.
        ranks: processes of the job, or processes merged; 0 for a program outside a job.
        parent_pid: process id of the nearest process above this one in its job that has a profile;
            without one, of the process that started this one.
        process_name: name that `multiprocessing` gave the process; "" where it did not start it.
        rank_source: source of the rank: a variable of the launcher, ``torch.distributed`` or
            ``jax.distributed``; children of a rank inherit the variable.
        attempt: how often the launcher had restarted the ranks when this process began.
        local_rank: number of this process among the ranks of its machine, from 0.
        local_ranks: ranks of the machine; 0 where the launcher does not say.
        pid_space: boot of the machine and namespace in which `pid` is unique.
    """

    command: tuple[str, ...] = ()
    script: str = ""
    cwd: str = ""
    python: str = ""
    platform: str = ""
    hostname: str = ""
    cpu_model: str = ""
    cpu_count: int = 0
    frameworks: Mapping[str, str] = field(default_factory=dict)
    start_unix_ns: int = 0
    wall_ns: int = 0
    cpu_user_ns: int = 0
    cpu_system_ns: int = 0
    peak_rss_bytes: int = 0
    pid: int = 0
    exit_reason: str = ""
    steps: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    rank: int = 0
    ranks: int = 0
    parent_pid: int = 0
    process_name: str = ""
    rank_source: str = ""
    attempt: int = 0
    local_rank: int = 0
    local_ranks: int = 0
    pid_space: str = ""

    @property
    def is_of_multiprocessing(self) -> bool:
        """Return whether `multiprocessing` started the interpreter, with code of its own."""
        return any(word.startswith("from multiprocessing.") for word in self.command)

    @property
    def shown_command(self) -> str:
        """Return the command without the interpreter's folder, and only the beginning of long code."""
        words = [PurePath(word).name if not n else word for n, word in enumerate(self.command)]
        code = [n + 1 for n, word in enumerate(words[:-1]) if word == "-c"][:1]
        for n in code:
            # `multiprocessing` passes sys.path and more to its helpers.
            text = " ".join(words[n].partition("; main(")[0].split())
            is_whole = len(text) <= _LONGEST_CODE and text == " ".join(words[n].split())
            words[n] = text if is_whole else f"{text[:_LONGEST_CODE]} ..."
        return shlex.join(words)
