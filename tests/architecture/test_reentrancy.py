"""What may be made twice, waited for with the wall clock, or asked for again by a signal handler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = sorted((ROOT / "src").rglob("*.py"))
NATIVE = [
    p for p in sorted((ROOT / "native").rglob("*.[ch]*")) if not {"tests", "fuzz"} & set(p.parts)
]
RUNS_IN_PROGRAM = ("src/deepcontext/profiler/recording/", "src/deepcontext/collectors/")
# Each rule: pattern, files, those that may, and why it is a rule.
RULES = {
    "functools.cache does not promise one call: what it makes may be made twice": (
        r"@functools\.(lru_)?cache|@(lru_)?cache\b",
        PYTHON,
        # Values, not state: whether a module exists; lines of a file.
        {"src/deepcontext/native_core.py", "src/deepcontext/profiler/model/source.py"},
    ),
    "locks in the program must be re-entrant for signal handlers: ProgramLock, or an operation": (
        r"threading\.(R?Lock|Condition|Event|(Bounded)?Semaphore|Barrier)\(",
        [p for p in PYTHON if p.relative_to(ROOT).as_posix().startswith(RUNS_IN_PROGRAM)],
        {"src/deepcontext/collectors/shared/program_lock.py"},
    ),
    "a clock that is set back must not lengthen a wait: core/condition.h": (
        r"system_clock|std::condition_variable|sem_timedwait|sem_wait|\bwait_until\(",
        NATIVE,
        {"native/core/condition.h"},  # names it in a comment
    ),
    "what threads use while the process exits must not be destroyed: static T *const made = new T()": (
        r"(?m)^(static )?(std::(vector|map|unordered_map|set|deque|mutex|string)\b[^(*&]*|Mutex) g_\w+",
        NATIVE,
        set(),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    pattern, files, allowed = RULES[rule]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }
    assert found - allowed == set(), rule
    assert allowed <= found, "an exception that is no longer needed"
