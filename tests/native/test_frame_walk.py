"""Call paths: each event hangs below the frames that were running, at the lines they were at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.native.conftest import Recorded

    Record = Callable[..., Recorded]


def test_two_calls_on_two_lines_of_one_caller(record: Record) -> None:
    seen = record("""
        def caller():
            mark()
            mark(); mark()
        caller()
    """)
    assert seen.events == {("<module>:4", "caller:2"): 1, ("<module>:4", "caller:3"): 2}


def test_the_same_callee_from_two_lines(record: Record) -> None:
    # The callee's frame has the same address, code and instruction both times.
    seen = record("""
        def callee():
            mark()
        def caller():
            callee()
            callee()
        caller()
    """)
    assert seen.events == {
        ("<module>:6", "caller:4", "callee:2"): 1,
        ("<module>:6", "caller:5", "callee:2"): 1,
    }


def test_a_loop_is_one_path(record: Record) -> None:
    seen = record("""
        def callee():
            mark()
        for _ in range(1000):
            callee()
    """)
    assert seen.events == {("<module>:4", "callee:2"): 1000}


def test_paths_of_changing_depth(record: Record) -> None:
    seen = record("""
        def deep(n):
            if n: deep(n - 1)
            mark()
        deep(2)
        mark()
    """)
    assert seen.events == {
        ("<module>:4", "deep:2", "deep:2", "deep:3"): 1,
        ("<module>:4", "deep:2", "deep:3"): 1,
        ("<module>:4", "deep:3"): 1,
        ("<module>:5",): 1,
    }


def test_equal_depth_and_leaf_below_another_caller(record: Record) -> None:
    seen = record("""
        def leaf(): mark()
        def one(): leaf()
        def two(): leaf()
        for f in (one, two, one): f()
    """)
    assert seen.events == {
        ("<module>:4", "one:2", "leaf:1"): 2,
        ("<module>:4", "two:3", "leaf:1"): 1,
    }


def test_generators_run_below_whoever_resumes_them(record: Record) -> None:
    seen = record("""
        def numbers():
            mark()
            yield 1
            mark()
            yield 2
        def first(g): next(g)
        def second(g): next(g)
        g = numbers()
        first(g)
        second(g)
    """)
    assert seen.events == {
        ("<module>:9", "first:6", "numbers:2"): 1,
        ("<module>:10", "second:7", "numbers:4"): 1,
    }


def test_yield_from_shows_the_whole_chain(record: Record) -> None:
    seen = record("""
        def inner():
            mark()
            yield
            mark()
        def outer():
            yield from inner()
        for _ in outer():
            pass
    """)
    assert seen.events == {
        ("<module>:7", "outer:6", "inner:2"): 1,
        ("<module>:7", "outer:6", "inner:4"): 1,
    }


def test_frames_of_the_same_code_at_two_places_take_turns(record: Record) -> None:
    # Each walk finds the same instructions as the one before, in frames at other addresses.
    seen = record("""
        def inner():
            while True:
                mark()
                yield
        def outer():
            yield from inner()
        def other():
            yield from inner()
        first, second, third = outer(), outer(), other()
        for one in (first, second, third) * 50:
            next(one)
    """)
    assert seen.events == {
        ("<module>:11", "outer:6", "inner:3"): 100,
        ("<module>:11", "other:8", "inner:3"): 50,
    }


def test_generator_expressions_and_throw_and_close(record: Record) -> None:
    seen = record("""
        def careful():
            try:
                yield
            except ValueError:
                mark()
                yield
            finally:
                mark()
        g = careful()
        next(g)
        g.throw(ValueError())
        g.close()
        sum(mark() or 0 for _ in range(3))
    """)
    assert seen.events == {
        ("<module>:11", "careful:5"): 1,
        ("<module>:12", "careful:8"): 1,
        ("<module>:13", "<genexpr>:13"): 3,
    }


def test_coroutines_show_the_awaiting_ones(record: Record) -> None:
    seen = record("""
        async def inner():
            mark()
            await pause()
            mark()
        class pause:
            def __await__(self):
                mark()
                yield
        async def outer():
            await inner()
        c = outer()
        c.send(None)
        try:
            c.send(None)
        except StopIteration:
            pass
    """)
    assert seen.events == {
        ("<module>:12", "outer:10", "inner:2"): 1,
        ("<module>:12", "outer:10", "inner:3", "pause.__await__:7"): 1,
        ("<module>:14", "outer:10", "inner:4"): 1,
    }


def test_asynchronous_generators(record: Record) -> None:
    seen = record("""
        async def numbers():
            mark()
            yield 1
        async def main():
            async for _ in numbers():
                mark()
        try:
            main().send(None)
        except StopIteration:
            pass
    """)
    assert seen.events == {
        ("<module>:8", "main:5", "numbers:2"): 1,
        ("<module>:8", "main:6"): 1,
    }


def test_lambdas_class_bodies_and_methods(record: Record) -> None:
    seen = record("""
        class A:
            mark()
            def f(self): mark()
            @property
            def p(self):
                return mark()
            class B:
                mark()
        A().f()
        A().p
        (lambda: mark())()
    """)
    assert seen.events == {
        ("<module>:1", "A:2"): 1,
        ("<module>:1", "A:7", "A.B:8"): 1,
        ("<module>:9", "A.f:3"): 1,
        ("<module>:10", "A.p:6"): 1,
        ("<module>:11", "<lambda>:11"): 1,
    }


def test_calls_through_c_functions(record: Record) -> None:
    # Each enters the C evaluation loop anew.
    seen = record("""
        class Key:
            def __init__(self, n): self.n = n
            def __lt__(self, other):
                mark()
                return self.n < other.n
        sorted([Key(2), Key(1)])
        list(map(lambda _: mark(), (1, 2)))
        eval("mark()")
    """)
    assert seen.events == {
        ("<module>:6", "Key.__lt__:4"): 1,
        ("<module>:7", "<lambda>:7"): 2,
        ("<module>:8", "<module>:1"): 1,
    }


def test_code_made_at_run_time_keeps_its_file(record: Record) -> None:
    seen = record("""
        code = compile("def made():\\n  mark()", "elsewhere.py", "exec")
        exec(code)
        made()
    """)
    assert seen.events == {("<module>:3", "made:2"): 1}
    assert seen.files["made:2"] == "elsewhere.py"
    assert seen.files["<module>:3"] == "source.py"


def test_names_and_files_in_any_script(record: Record) -> None:
    seen = record(
        """
        def größe(): mark()
        def 尺寸(): größe()
        def ﬁt(): 尺寸()
        ﬁt()
        """,
        file="/données/模型/🔥.py",
    )
    # The compiler normalises identifiers (NFKC): the last one's ligature becomes f and i.
    assert seen.events == {("<module>:4", "fit:3", "尺寸:2", "größe:1"): 1}
    assert set(seen.files.values()) >= {"/données/模型/🔥.py"}


def test_a_file_name_with_undecodable_bytes(record: Record) -> None:
    seen = record("mark()", file="/data/\udcff.py")
    assert seen.events == {("<module>:1",): 1}
    assert seen.files["<module>:1"] == "/data/?.py"


def test_an_exception_leaves_the_frames_it_passed(record: Record) -> None:
    seen = record("""
        def fails():
            try:
                raise ValueError
            finally:
                mark()
        def caller():
            try:
                fails()
            except ValueError:
                mark()
        caller()
    """)
    assert seen.events == {
        ("<module>:11", "caller:8", "fails:5"): 1,
        ("<module>:11", "caller:10"): 1,
    }


def test_finalizers_run_below_whatever_dropped_the_object(record: Record) -> None:
    seen = record("""
        class Noisy:
            def __del__(self): mark()
        def drop():
            x = Noisy()
            del x
        drop()
    """)
    assert seen.events == {("<module>:6", "drop:5", "Noisy.__del__:2"): 1}


def test_nothing_is_recorded_outside_a_session(record: Record) -> None:
    seen = record("pass")
    assert seen.counters["nodes"] == 0
    assert not seen.events
