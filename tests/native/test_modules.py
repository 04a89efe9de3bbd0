"""Module instances: a call is a node named after its instance, also when addresses are re-used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# A framework in small: instances are called, and their calls are modules.
_FRAMEWORK = """
    from conftest import read, session
    from deepcontext import _native

    class Module:
        def __init__(self, *parts):
            self.parts = parts
        def __call__(self):
            for part in self.parts:
                part()
            _native.count_event("mark")
    class Linear(Module):
        pass
    class Net(Module):
        pass

    _native.set_module_call(Module.__call__.__code__)
    _native.add_code_rule("suffix", "program.py", "Module.__call__", "module_call", "")

    def modules(seen):
        found = [
            (*(part for part in path if part[0] == "<" and part[-1] == ">"), count)
            for path, count in seen.events.items()
        ]
        return sorted(found, key=str)
"""


def test_calls_are_named_by_type_until_more_is_known(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    net = Net(Linear(), Linear())
    with session():
        net()
    print(modules(read()))
    """
    )
    # Two instances, one label: they are joined where the tree is read.
    assert output.strip() == "[('<Net>', '<Linear>', 2), ('<Net>', 1)]"


def test_labels_given_later_name_what_was_recorded_before(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    first, second = Linear(), Linear()
    net = Net(first, second, second)
    with session():
        for _ in range(2):
            net()
            _native.name_module(id(first), "Linear 'fc1'")
            _native.name_module(id(second), "Linear 'fc2'")
        assert _native.unnamed_modules() == [id(net)]
    print(modules(read()))
    """
    )
    expected = [("<Net>", "<Linear 'fc1'>", 2), ("<Net>", "<Linear 'fc2'>", 4), ("<Net>", 2)]
    assert output.strip() == str(sorted(expected, key=str))


def test_the_resolver_is_given_the_modules_being_called(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    import threading
    calls = []
    def resolve(stacks):
        calls.append([[type(module).__name__ for module in stack] for stack in stacks])
    _native.set_module_resolver(resolve)
    entered, done = threading.Event(), threading.Event()
    class Waiting(Module):
        pass
    def wait():
        entered.set()
        done.wait()
    with session():
        thread = threading.Thread(target=Waiting(wait))
        thread.start()
        entered.wait()
        Net(Linear(_native.resolve_modules))()
        done.set()
        thread.join()
    print(calls[-1] if len(calls) == 1 else [call for call in calls if len(call) == 2][0])
    _native.clear_modules()
    count = len(calls)
    _native.resolve_modules()
    assert len(calls) == count
    """
    )
    assert sorted(eval(output)) == [["Net", "Linear"], ["Waiting"]]


def test_a_resolver_that_fails_is_reported_and_breaks_nothing(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    import sys
    reports = []
    sys.unraisablehook = lambda report: reports.append(report.exc_type.__name__)
    def resolve(stacks):
        raise KeyError("no")
    _native.set_module_resolver(resolve)
    with session():
        Net(Linear(_native.resolve_modules))()
    print(set(reports), modules(read()))
    """
    )
    assert output.strip() == "{'KeyError'} [('<Net>', '<Linear>', 1), ('<Net>', 1)]"


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="ASan does not re-use addresses soon"
)
def test_a_re_used_address_is_another_module(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    re_used = 0
    addresses = set()
    with session():
        for number in range(300):
            module = Linear()
            module()
            _native.name_module(id(module), f"Linear 'fc{number % 3}'")
            module()
            re_used += id(module) in addresses
            addresses.add(id(module))
            _native.forget_module(id(module))
            del module
    assert re_used > 200
    counts = {}
    for label, count in modules(read()):
        counts[label] = counts.get(label, 0) + count
    assert _native.counters()["nodes"] < 300
    print(sorted(counts.items()))
    """
    )
    counts = dict(eval(output))
    # Once many have died, a new one counts for its type until it has a label.
    unnamed = counts.pop("<Linear>")
    assert unnamed + sum(counts.values()) == 600
    assert set(counts) == {f"<Linear 'fc{number}'>" for number in range(3)}
    assert all(100 <= count <= 200 for count in counts.values())


def test_a_dying_module_costs_no_look_ups_of_others(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    net = Net(*(Linear() for _ in range(100)))
    def fresh():
        module = Linear()
        module()
        _native.forget_module(id(module))
    with session():
        net()
        fresh()
        before = _native.counters()["address_lookups"]
        for _ in range(100):
            fresh()
            net()
        print(_native.counters()["address_lookups"] - before)
    """
    )
    assert 100 <= int(output) < 1500


def test_a_label_is_not_given_to_another_type_that_died_unnoticed(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    module = Net()
    with session():
        module()
        module.__class__ = Linear  # stands for another object at the same address
        _native.name_module(id(module), "Linear 'fc1'")
        module()
    print(modules(read()))
    """
    )
    assert eval(output) == [("<Linear 'fc1'>", 1), ("<Net>", 1)]


def test_another_type_in_the_place_of_one_that_died_unnoticed(
    in_subprocess: Callable[[str], str],
) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    import threading
    module = Net()
    def work():
        module()
    with session():
        for cls in (Net, Linear, Net):
            module.__class__ = cls  # stands for another object at the same address
            thread = threading.Thread(target=work)  # which gets the recorder of the last one
            thread.start()
            thread.join()
    print(modules(read()))
    """
    )
    assert eval(output) == [("<Linear>", 1), ("<Net>", 2)]


def test_an_instance_without_self_has_no_node(in_subprocess: Callable[[str], str]) -> None:
    output = in_subprocess(
        _FRAMEWORK
        + """
    class Odd(Module):
        def run(self):
            del self
            _native.count_event("mark")
    _native.set_module_call(Odd.run.__code__)
    _native.add_code_rule("suffix", "program.py", "Odd.run", "module_call", "")
    with session():
        Odd().run()
    print(modules(read()))
    """
    )
    assert output.strip() == "[(1,)]"
