"""Recursion: deep paths are kept, deeper ones than the recorder holds are cut and counted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]

_LONGEST_PATH = 2048  # Recorder::kMaxPath


def test_recursion_is_kept_frame_by_frame(record: Record) -> None:
    seen = record("""
        def f(n):
            if n:
                f(n - 1)
            else:
                mark()
        f(300)
    """)
    assert seen.events == {("<module>:6", *["f:3"] * 300, "f:5"): 1}
    assert seen.counters["paths_cut"] == 0


def test_a_very_deep_path_is_cut_and_counted(record: Record) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        seen = record("""
            def f(n):
                mark()
                if n:
                    f(n - 1)
            f(20_000)
        """)
    finally:
        sys.setrecursionlimit(limit)
    assert seen.counters["paths_cut"] >= 20_000 - _LONGEST_PATH
    assert sum(seen.events.values()) == 20_001
    assert max(map(len, seen.events)) <= _LONGEST_PATH
    # The innermost frames are left out: paths keep their beginning, and the tree stays small.
    assert all(path[0] == "<module>:5" for path in seen.events)
    assert seen.counters["nodes"] < 3 * _LONGEST_PATH


def test_paths_are_right_again_after_one_that_was_cut(record: Record) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        seen = record("""
            def f(n):
                if n:
                    f(n - 1)
                else:
                    mark()
            f(5000)
            mark()
            f(1)
        """)
    finally:
        sys.setrecursionlimit(limit)
    (cut,) = (path for path in seen.events if len(path) > 3)
    assert set(cut) == {"<module>:6", "f:3"}
    assert seen.events == {cut: 1, ("<module>:7",): 1, ("<module>:8", "f:3", "f:5"): 1}


def test_scopes_left_open_are_refused_before_operators(record: Record) -> None:
    seen = record("""
        tokens = [enter("s") for _ in range(1500)]
        mark()
        for token in reversed(tokens):
            leave(token)
        mark()
    """)
    assert seen.counters["scopes_refused"] == 1500 - 512
    assert seen.counters["levels_refused"] == 0
    assert sorted(path.count("[s]") for path in seen.events) == [0, 512]


def test_a_full_tree_counts_one_level_up(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess("""
        from conftest import call_source, read, session
        with session(node_limit=100):
            call_source('''
                def f(n):
                    mark()
                    if n: f(n - 1)
                f(300)
            ''')
        seen = read()
        print(seen.counters["nodes"], seen.counters["contexts_refused"] > 200)
    """)
    assert output.split() == ["100", "True"]
