"""Scopes: events inside hang below them, wherever the function that opened them went."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]


def test_events_inside_hang_below_the_scope(record: Record) -> None:
    seen = record("""
        def work():
            mark()
        token = enter("a")
        mark()
        work()
        leave(token)
        mark()
    """)
    assert seen.events == {
        ("<module>:3", "[a]", "<module>:4"): 1,
        ("<module>:3", "[a]", "<module>:5", "work:2"): 1,
        ("<module>:7",): 1,
    }


def test_nested_scopes(record: Record) -> None:
    seen = record("""
        def inner():
            token = enter("b")
            mark()
            leave(token)
            mark()
        token = enter("a")
        inner()
        leave(token)
    """)
    assert seen.events == {
        ("<module>:6", "[a]", "<module>:7", "inner:2", "[b]", "inner:3"): 1,
        ("<module>:6", "[a]", "<module>:7", "inner:5"): 1,
    }


def test_a_scope_opened_in_a_helper_goes_on_in_the_caller(record: Record) -> None:
    seen = record("""
        def helper():
            return enter("a")
        token = helper()
        mark()
        leave(token)
        mark()
    """)
    assert seen.events == {
        ("<module>:3", "helper:2", "[a]", "<module>:4"): 1,
        ("<module>:6",): 1,
    }


def test_a_function_in_the_place_of_a_returned_helper(record: Record) -> None:
    # The second function's frame lies where the helper's lay.
    seen = record("""
        def helper():
            return enter("a")
        def work():
            mark()
        def caller():
            token = helper()
            work()
            mark()
            leave(token)
        caller()
    """)
    opened = ("<module>:10", "caller:6", "helper:2", "[a]")
    assert seen.events == {
        (*opened, "caller:7", "work:4"): 1,
        (*opened, "caller:8"): 1,
    }


def test_the_helper_itself_in_the_place_of_the_returned_helper(record: Record) -> None:
    seen = record("""
        def helper(is_opening):
            if is_opening:
                return enter("a")
            mark()
        def caller():
            token = helper(True)
            helper(False)
            leave(token)
        caller()
    """)
    assert seen.events == {
        ("<module>:9", "caller:6", "helper:3", "[a]", "caller:7", "helper:4"): 1,
    }


def test_a_scope_opened_helpers_deep(record: Record) -> None:
    seen = record("""
        def third(): return enter("a")
        def second(): return third()
        def first(): return second()
        def work(): mark()
        def caller():
            token = first()
            work()
            leave(token)
        caller()
    """)
    opened = ("<module>:9", "caller:6", "first:3", "second:2", "third:1", "[a]")
    assert seen.events == {(*opened, "caller:7", "work:4"): 1}


def test_a_scope_around_a_yield(record: Record) -> None:
    seen = record("""
        def steps():
            token = enter("a")
            yield
            mark()
            leave(token)
        def consumer(g):
            for _ in g:
                pass
        g = steps()
        next(g)
        consumer(g)
    """)
    assert sum(seen.events.values()) == 1
    ((path,),) = (seen.events,)
    assert path[:3] == ("<module>:10", "steps:2", "[a]")
    assert path[-1] == "steps:4"
    assert "<module>:10" not in path[3:]


def test_scopes_closed_in_the_order_they_were_opened(record: Record) -> None:
    seen = record("""
        def work(): mark()
        def run():
            first = enter("a")
            second = enter("b")
            work()
            leave(first)
            work()
            leave(second)
            work()
        run()
    """)
    assert seen.events == {
        ("<module>:10", "run:3", "[a]", "run:4", "[b]", "run:5", "work:1"): 1,
        ("<module>:10", "run:4", "[b]", "run:7", "work:1"): 1,
        ("<module>:10", "run:9", "work:1"): 1,
    }


def test_a_path_found_in_a_scope_is_not_used_after_it(record: Record) -> None:
    # The same instructions run inside both scopes, inside the second only, and outside.
    seen = record("""
        tokens = {}
        def helper(kind):
            if kind in "ab":
                tokens[kind] = enter(kind)
            elif kind in "AB":
                leave(tokens[kind.lower()])
            else:
                mark()
        def run():
            for kind in "-ab-A-B-":
                helper(kind)
        run()
    """)
    plain = ("<module>:12", "run:11", "helper:8")
    assert seen.events[plain] == 2
    assert sum(seen.events.values()) == 4
    inside = [path for path in seen.events if "[a]" in path or "[b]" in path]
    assert sum(seen.events[path] for path in inside) == 2
    assert all(path[-1] == "helper:8" for path in inside)


def test_leaving_twice_or_with_a_wrong_token_does_nothing(record: Record) -> None:
    seen = record("""
        token = enter("a")
        leave(token + 2)
        leave(0)
        mark()
        leave(token)
        leave(token)
        mark()
    """)
    assert seen.events == {("<module>:1", "[a]", "<module>:4"): 1, ("<module>:7",): 1}


def test_a_scope_left_open_ends_with_the_session(record: Record) -> None:
    record('enter("open")\nmark()')
    seen = record("mark()")
    assert seen.events == {("<module>:1",): 1}


def test_a_scope_of_the_last_session_does_not_close_one_of_this(record: Record) -> None:
    tokens: list[int] = []
    record('tokens.append(enter("old"))', tokens=tokens)
    seen = record('enter("new")\nleave(tokens[0])\nmark()', tokens=tokens)
    assert seen.events == {("<module>:1", "[new]", "<module>:3"): 1}


def test_names_that_are_ever_new_are_joined_past_a_ceiling(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess("""
        from conftest import read, session
        from deepcontext import _native
        with session():
            for number in range(60):
                name = chr(ord("a") + number % 26) * (2_000_000 + number)
                token = _native.enter_scope(name)
                _native.count_event("m")
                _native.leave_scope(token)
        seen = read()
        other = sum(count for path, count in seen.events.items() if "[(other names)]" in path)
        print(other, sum(seen.events.values()), seen.counters["names_refused"])
    """)
    other, events, refused = map(int, output.split())
    assert events == 60
    assert 20 < other <= refused


def test_scope_names_of_any_script(record: Record) -> None:
    seen = record('token = enter("épôque ①")\nmark()\nleave(token)')
    assert seen.events == {("<module>:1", "[épôque ①]", "<module>:2"): 1}
