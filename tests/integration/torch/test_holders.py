"""Which Python objects hold tensors: named as a person would, without running code of the program."""

from __future__ import annotations

import gc
import json
import traceback
import types
import weakref
from collections import deque
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import deepcontext
from deepcontext import _native
from deepcontext.collectors.torch import holders as collector
from deepcontext.collectors.torch.holder_names import _module_name, attributes
from deepcontext.profiler.summaries.holders import Holder, holders

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

torch = pytest.importorskip("torch")

COUNT = 40
SIZE = 1 << 14
shared: list[Any] = []
by_name: dict[str, list[Any]] = {}


class Trainer:
    """Keeps what it made."""

    def __init__(self) -> None:
        self.logged: list[Any] = []


class Slots:
    """Has no `__dict__`."""

    __slots__ = ("kept",)

    def __init__(self, kept: object) -> None:
        self.kept = kept


def make(*, with_graph: bool = True) -> list[Any]:
    weight = torch.ones(SIZE, requires_grad=with_graph)
    return [weight * 2.0 for _ in range(COUNT)]


def found(recording: Any) -> dict[str, Holder]:
    return {each.name: each for each in holders(recording.profile)}


@pytest.fixture(autouse=True)
def emptied(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Searches end, however busy the machine is; nothing of a test stays for the next one."""
    monkeypatch.setattr(collector, "_LONGEST_SEARCH_S", 60.0)
    yield
    shared.clear()
    by_name.clear()
    gc.collect()


@pytest.mark.long
def test_variables_attributes_and_keys_are_named(record: Any) -> None:
    trainer, slots = Trainer(), Slots(None)

    def workload() -> None:
        shared.extend(make())
        trainer.logged.extend(make(with_graph=False))
        slots.kept = make()
        by_name["losses"] = make()

    seen = found(record(workload, holders=True))
    assert set(seen) >= {
        f"list 'shared' of {__name__}",
        "list Trainer.logged",
        "list Slots.kept",
        f"list inside 'by_name' of {__name__}",
    }
    logged, of_module = seen["list Trainer.logged"], seen[f"list 'shared' of {__name__}"]
    assert (logged.tensors, logged.with_graph) == (COUNT, 0)
    assert (of_module.tensors, of_module.with_graph) == (COUNT, COUNT)
    assert of_module.size_bytes == COUNT * SIZE * 4
    assert of_module.kept_share == 1.0
    assert {function for _, _, function in of_module.places[0]} >= {"make"}


def test_a_local_variable_is_named_by_a_snapshot(tmp_path: Path) -> None:
    def workload(session: deepcontext.Session) -> None:
        losses = deque(make())
        session.snapshot()
        losses.clear()

    path = tmp_path / "out.dcprof"
    session = deepcontext.start(path, cpu_rate=0, holders=True)
    try:
        workload(session)
    finally:
        deepcontext.stop()
    names = [each.name for each in holders(deepcontext.Profile.load(path))]
    (name,) = (each for each in names if each.startswith("deque"))
    assert name.startswith("deque 'losses' in ")
    assert name.endswith("workload")


@pytest.mark.long
def test_tensors_in_rows_count_for_the_list_of_rows(record: Any) -> None:
    rows: list[tuple[int, Any]] = []
    recording = record(lambda: rows.extend(enumerate(make())), holders=True)
    (holder,) = (each for name, each in found(recording).items() if name.startswith("list 'rows'"))
    assert (holder.tensors, holder.with_graph) == (COUNT, COUNT)


def test_frames_that_a_traceback_keeps_are_named(record: Any) -> None:
    kept: list[Exception] = []

    def fail() -> None:
        activation = torch.ones(1 << 20, requires_grad=True) * 2.0
        raise ValueError(str(activation.shape))

    def workload() -> None:
        try:
            fail()
        except ValueError as error:
            kept.append(error)

    names = set(found(record(workload, holders=True)))
    assert [name for name in names if name.startswith("a traceback") and "fail" in name]


@pytest.mark.long
def test_what_each_step_makes_anew_is_not_kept(record: Any) -> None:
    trainer = Trainer()

    def workload() -> None:
        for _ in range(10):
            trainer.logged = make()

    assert found(record(workload, holders=True))["list Trainer.logged"].kept_share == pytest.approx(
        0.1, abs=0.01
    )


class Hostile(list[Any]):
    """Counts calls of its own code."""

    calls: ClassVar[list[str]] = []

    def __iter__(self) -> Any:
        self.calls.append("iter")
        return super().__iter__()

    def __len__(self) -> int:
        self.calls.append("len")
        return super().__len__()

    def __getattribute__(self, name: str) -> Any:
        if name != "calls":
            type(self).calls.append(f"attribute {name}")
        return super().__getattribute__(name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        self.calls.append("class")
        return list

    def __eq__(self, other: object) -> bool:
        self.calls.append("eq")
        return False

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.long
def test_no_code_of_the_program_runs(record: Any) -> None:
    class Owner:
        def __getattribute__(self, name: str) -> Any:
            Hostile.calls.append(f"owner {name}")
            return object.__getattribute__(self, name)

    owner, hostile = Owner(), Hostile()
    vars(Owner)  # the class itself may be read
    object.__setattr__(owner, "kept", hostile)

    def workload() -> None:
        list.extend(hostile, make())
        Hostile.calls.clear()

    names = set(found(record(workload, holders=True)))
    assert "Hostile Owner.kept" in names
    assert Hostile.calls == []


def test_attributes_that_are_computed_are_left_out() -> None:
    class Computes:
        @property
        def value(self) -> int:
            raise AssertionError

    computed = Computes()
    computed.__dict__["plain"] = 1
    assert attributes(computed) == {"plain": 1}


def test_on_request_only(record: Any) -> None:
    def workload() -> None:
        shared.extend(make())

    assert "holders" not in record(workload).profile.sections
    assert "holders" not in record(workload, holders=True, memory=False).profile.sections


def test_a_search_ends_at_its_deadline() -> None:
    crowd = [[number] for number in range(200_000)]
    rows, is_complete = _native.tensor_holders(torch.Tensor, 8, 16, 0.0)
    assert not is_complete
    assert len(crowd) == 200_000
    assert isinstance(rows, list)
    assert not _native.object_referrers([crowd], 4, 0.0)[1]
    assert _native.tensor_holders(torch.Tensor, 8, 16, 60.0)[1]


def test_variables_of_running_functions() -> None:
    kept = [1, 2, 3]

    def inner() -> list[tuple[int, types.CodeType, str]]:
        return _native.holding_variables([kept])

    names = {(code.co_name, variable) for _, code, variable in inner()}
    assert ("test_variables_of_running_functions", "kept") not in names  # it is in a cell
    mine = kept
    names = {(code.co_name, name) for _, code, name in _native.holding_variables([mine])}
    assert ("test_variables_of_running_functions", "mine") in names


@pytest.mark.long
def test_the_program_keeps_nothing_alive_longer(record: Any) -> None:
    def workload() -> None:
        shared.extend(make())

    recording = record(workload, holders=True)
    reference = gc.get_referrers(shared[0])
    assert [each for each in reference if each is not shared and isinstance(each, list)] == []
    rows = json.loads(recording.profile.sections["holders"])["holders"]
    assert [row["is_complete"] for row in rows] == [True] * len(rows)


@pytest.mark.long
def test_a_search_that_ended_early_is_reported(
    record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted() -> list[str]:
        recording = record(lambda: shared.extend(make()), holders=True)
        return [each for each in recording.profile.trust.notes if "search for objects" in each]

    assert noted() == []
    monkeypatch.setattr(collector, "_LONGEST_SEARCH_S", 0.0)
    assert noted()


def test_a_tuple_that_is_being_filled_is_left_alone() -> None:
    """Python gives up filling a tuple that has a second reference."""
    rows: list[Any] = []

    def values() -> Iterator[Any]:
        yield from (torch.ones(1) for _ in range(COUNT))
        rows.extend(_native.tensor_holders(torch.Tensor, 8, 16, 60.0)[0])

    assert len(tuple(values())) == COUNT
    assert [held for held, _ in rows if type(held) is tuple] == []


@pytest.mark.long
def test_frames_that_are_cleared_free_their_tensors(record: Any) -> None:
    """Looking at a frame must not give it a dict of its variables, which clearing leaves."""
    kept: list[Exception] = []
    references: list[weakref.ref[Any]] = []

    def fail() -> None:
        activation = torch.ones(1 << 20, requires_grad=True) * 2.0
        references.append(weakref.ref(activation))
        raise ValueError(str(activation.shape))

    def workload() -> None:
        try:
            fail()
        except ValueError as error:
            kept.append(error)

    names = found(record(workload, holders=True))
    assert [name for name in names if name.startswith("a traceback")]
    assert references[0]() is not None
    traceback.clear_frames(kept[0].__traceback__)
    assert references[0]() is None


@pytest.mark.parametrize("name", ["__main__", "__mp_main__"])
def test_a_script_that_has_ended_is_named_by_its_file(name: str) -> None:
    """Functions of atexit find its module without `__file__`, and twice where `multiprocessing` is loaded."""
    module = types.ModuleType("__main__")
    module.__loader__ = SourceFileLoader("__main__", "/home/me/train.py")
    assert _module_name(name, module) == "train.py"
