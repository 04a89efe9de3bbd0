"""What may be made twice, waited for with the wall clock, or asked for again by a signal handler."""

from __future__ import annotations

import ast
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
        # Values, not state: whether a module exists; lines of a file; tables of data.
        {
            "src/deepcontext/native_core.py",
            "src/deepcontext/profiler/format/user_code.py",
            "src/deepcontext/profiler/model/source.py",
            "src/deepcontext/analyzers/catalogue/__init__.py",
        },
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

# An operation that imports a module waits for ever if a signal handler called it that has interrupted
# the import of this module. Functions of the profiler that import, and why these may.
_OWN = "modules of the profiler that no other thread imports and that import only loaded ones"
_NOT_IN_OPERATION = "runs in no operation"
MAY_IMPORT = {
    "collectors/gpu/amd.py:probe": _NOT_IN_OPERATION,
    "collectors/gpu/nvidia.py:probe": _NOT_IN_OPERATION,
    "collectors/gpu/trial_program.py:try_amd": _NOT_IN_OPERATION,
    "collectors/gpu/properties.py:_name_of_cuda": "frameworks that use a GPU have loaded ctypes",
    "collectors/gpu/properties.py:_memory_of_cuda": "frameworks that use a GPU have loaded ctypes",
    "collectors/gpu/properties.py:_of_cuda": "frameworks that use a GPU have loaded ctypes",
    "profiler/recording/launch/bootstrap.py:follow_children": _NOT_IN_OPERATION,
    "profiler/recording/launch/bootstrap.py:_left_running": _NOT_IN_OPERATION,
    "profiler/recording/launch/children.py:start_session": _OWN,
    "profiler/recording/launch/children_path/sitecustomize.py:_begin": _NOT_IN_OPERATION,
    "profiler/recording/launch/own_children.py:_look": _OWN,
    "profiler/recording/launch/path/sitecustomize.py:_begin": _NOT_IN_OPERATION,
    "profiler/recording/launch/path/sitecustomize.py:_say": _NOT_IN_OPERATION,
    "profiler/recording/part.py:_operation": _NOT_IN_OPERATION,
    "profiler/recording/session.py:_warn": _NOT_IN_OPERATION,
}


def test_operations_import_nothing() -> None:
    found = set()
    for path in PYTHON:
        name = path.relative_to(ROOT / "src/deepcontext").as_posix()
        if not f"src/deepcontext/{name}".startswith(RUNS_IN_PROGRAM):
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and any(map(_imports, ast.walk(function))):
                found.add(f"{name}:{function.name}")
    assert found == MAY_IMPORT.keys()


def _imports(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func)
    return is_call or isinstance(node, ast.Import | ast.ImportFrom)


def test_what_others_wait_for_happens_however_a_thread_ends() -> None:
    """A body that throws leaves nobody waiting: each Event is set by a scope guard."""
    declared = re.compile(r"(?m)^\s*(?:auto (\w+) = std::make_shared<Event>|Event (\w+);)")
    found, unguarded = set(), []
    for path in NATIVE:
        if path.parts[-2] == "jax":  # where an Event is one of a trace
            continue
        text = path.read_text(encoding="utf-8")
        names = {first or second for first, second in declared.findall(text)}
        source = path.with_suffix(".cpp")
        guards = source.read_text(encoding="utf-8") if names and source.exists() else ""
        guarded = set(re.findall(r"Event::SetAtEnd \w+\([*]?(?:\w+->)?(\w+)\)", guards))
        unguarded += [f"{path.name}: {name}" for name in sorted(names - guarded)]
        found |= names
    assert found == {"done", "ended", "opened_"}
    assert unguarded == []


def test_a_fork_waits_for_no_window_of_jax() -> None:
    """The lock of `jax::Attribution` is held while a window is joined, which takes as long as it likes.

    A lint, because a test that forks while a window is joined cannot know that it is.
    """
    handlers = (ROOT / "native/session/fork_handlers.cpp").read_text(encoding="utf-8")
    attribution = (ROOT / "native/jax/attribution.h").read_text(encoding="utf-8")
    before = handlers[: handlers.index("void afterFork()")]
    assert "Attribution::" not in before
    assert "forkLock" not in attribution
    assert "jax::Attribution::instance().abandonInChild()" in handlers


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
