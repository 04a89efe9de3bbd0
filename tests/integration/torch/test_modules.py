"""Module calls are frames named after the instance: ``Linear 'encoder.layers.0.linear1'``."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

from deepcontext.profiler.format.frame import FrameKind

torch = pytest.importorskip("torch")
nn = torch.nn


def modules_of(path: list[str]) -> list[str]:
    return [text for text in path if "'" in text and ":" not in text and "<" not in text]


def labels(recording: Any) -> set[str]:
    return {recording.text(node) for node in recording.nodes(FrameKind.MODULE)}


class Encoder(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16) for _ in range(2))
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})

    def forward(self, tokens: Any) -> Any:
        for layer in self.layers:
            tokens = layer(tokens)
        return [head(tokens) for head in self.heads.values()]


class Model(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.tail = nn.Sequential(nn.Identity(), nn.Sequential(nn.ReLU(), nn.Linear(2, 1)))

    def forward(self, tokens: Any) -> Any:
        return self.tail(self.encoder(tokens)[0])


def test_names_are_paths_from_the_outermost_module(record: Any) -> None:
    recording = record(Model(), torch.randn(3, 1, 8))
    assert labels(recording) >= {
        "Model",
        "Encoder 'encoder'",
        "TransformerEncoderLayer 'encoder.layers.0'",
        "Linear 'encoder.layers.1.linear2'",
        "MultiheadAttention 'encoder.layers.0.self_attn'",
        "Linear 'encoder.heads.b'",
        "Sequential 'tail.1'",
        "Linear 'tail.1.1'",
    }
    (path,) = (p for p in recording.paths("aten::addmm") if "Linear 'tail.1.1'" in p)
    assert [text for text in path if text.startswith(("Model", "Sequential '", "Linear '"))] == [
        "Model",
        "Model.forward: return self.tail(self.encoder(tokens)[0])",
        "Sequential 'tail'",
        "Sequential 'tail.1'",
        "Linear 'tail.1.1'",
    ]


class Tied(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first

    def forward(self, value: Any) -> Any:
        value = self.first(value)
        return self.again(value)


def test_a_shared_module_has_one_name_and_a_frame_a_call_site(record: Any) -> None:
    recording = record(Tied(), torch.ones(1, 4))
    assert labels(recording) == {"Tied", "Linear 'first'"}
    assert [path[1:3] for path in recording.paths("Linear 'first'")] == [
        ["Tied.forward: value = self.first(value)", "Linear 'first'"],
        ["Tied.forward: return self.again(value)", "Linear 'first'"],
    ]


def call_in_a_loop(module: Any, times: int) -> None:
    for _ in range(times):
        module(torch.ones(1, 4))


def test_a_module_called_twice_on_a_line_is_one_frame(record: Any) -> None:
    recording = record(call_in_a_loop, nn.Linear(4, 4), 5)
    assert recording.calls("aten::linear") == 5
    assert len(recording.nodes(FrameKind.MODULE)) == 1


def build_and_call() -> None:
    late = nn.Sequential(nn.Linear(4, 4))
    late(torch.ones(1, 4))
    late.append(nn.Tanh())
    late(torch.ones(1, 4))


def test_modules_made_after_the_start_have_names(record: Any) -> None:
    recording = record(build_and_call)
    assert labels(recording) == {"Sequential", "Linear '0'", "Tanh '1'"}


class Left(nn.Linear):  # type: ignore[name-defined, misc]
    pass


class Right(nn.Linear):  # type: ignore[name-defined, misc]
    pass


def call_left(value: Any) -> None:
    nn.Sequential(Left(4, 4))(value)


def call_right(value: Any) -> None:
    nn.Sequential(nn.Sequential(Right(4, 4)))(value)


def make_and_free(rounds: int) -> None:
    """Freed modules leave their addresses to modules of another type and name."""
    value = torch.ones(1, 4)
    for _ in range(rounds):
        call_left(value)
        call_right(value)


def test_an_address_used_again_never_carries_the_old_name(record: Any) -> None:
    """After many deaths a new module is known by its type until its name was asked for."""
    recording = record(make_and_free, 500)
    left = {"Sequential", "Left", "Left '0'"}
    right = {"Sequential", "Sequential '0'", "Right", "Right '0.0'"}
    for node in recording.nodes(FrameKind.MODULE):
        is_left = any(text.startswith("call_left") for text in recording.path(node))
        assert recording.text(node) in (left if is_left else right)
    assert {"Left '0'", "Right '0.0'"} <= labels(recording)
    assert recording.calls("aten::linear") == 1000


def test_memory_is_bounded_when_modules_are_made_in_a_loop(record: Any) -> None:
    some = record(make_and_free, 200).counters["nodes"]
    many = record(make_and_free, 2000).counters["nodes"]
    assert many <= some + 50  # samples of a longer run find more lines


class Functional(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, value: Any) -> Any:
        value = nn.functional.linear(value, self.inner.weight)
        return self.inner.forward(value)


def test_calls_past_the_module_protocol_have_no_module_frame(record: Any) -> None:
    recording = record(Functional(), torch.ones(1, 4))
    assert labels(recording) == {"Functional"}
    assert [path[1:] for path in recording.paths("aten::linear")] == [
        [
            "Functional.forward: value = nn.functional.linear(value, self.inner.weight)",
            "aten::linear",
        ],
        [
            "Functional.forward: return self.inner.forward(value)",
            "Linear.forward",
            "aten::linear",
        ],
    ]


def call_while_main_waits(model: Any) -> None:
    """The main thread, which would name the modules, is inside a lock all the while."""
    thread = threading.Thread(target=model, args=(torch.randn(3, 1, 8),))
    thread.start()
    thread.join()


def test_names_are_found_when_the_main_thread_was_blocked(record: Any) -> None:
    recording = record(call_while_main_waits, Model())
    assert labels(recording) >= {"Model", "Encoder 'encoder'", "Linear 'encoder.layers.1.linear2'"}


def call_a_part_first(model: Any) -> None:
    model.encoder.heads["a"](torch.ones(1, 8))
    model.encoder(torch.randn(3, 1, 8))
    model(torch.randn(3, 1, 8))


def test_a_part_called_before_its_whole(record: Any) -> None:
    """The part is named by what is known at the end: its place in the model."""
    recording = record(call_a_part_first, Model())
    assert "Linear 'encoder.heads.a'" in labels(recording)
    assert "Encoder 'encoder'" in labels(recording)


class Closed(nn.Module):  # type: ignore[name-defined, misc]
    """`self` of its forward lives in a closure cell."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, value: Any) -> Any:
        return [self.inner(value) for _ in range(1)][0] + (lambda: self.inner(value))()

    def __len__(self) -> int:
        return 0  # a module that is falsy


def test_a_module_that_is_false_and_whose_self_is_a_cell(record: Any) -> None:
    recording = record(Closed(), torch.ones(1, 4))
    assert labels(recording) == {"Closed", "Linear 'inner'"}


class Unhashable(nn.Module):  # type: ignore[name-defined, misc]
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("modules are not to be compared")

    def forward(self, value: Any) -> Any:
        return value + 1


def test_a_module_that_cannot_be_hashed_or_compared(
    record: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = record(Unhashable(), torch.ones(1))
    assert labels(recording) == {"Unhashable"}
    assert not capfd.readouterr().err


class Refusing(nn.Module):  # type: ignore[name-defined, misc]
    def named_modules(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("not to be asked")

    def forward(self, value: Any) -> Any:
        return value + 1


def test_a_module_that_will_not_list_its_parts_keeps_its_type(
    record: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    recording = record(Refusing(), torch.ones(1))
    assert labels(recording) == {"Refusing"}
    assert not capfd.readouterr().err


def test_no_module_is_kept_alive(record: Any) -> None:
    import weakref

    model = Model()
    watched = weakref.ref(model)

    def use() -> None:
        nonlocal model
        model(torch.randn(3, 1, 8))
        del model

    record(use)
    gc.collect()
    assert watched() is None


def test_recursion_of_a_module_into_itself(record: Any) -> None:
    class Fold(nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, value: Any, depth: int) -> Any:
            return self(value, depth - 1) if depth else value + 1

    recording = record(Fold(), torch.ones(1), 3)
    (path,) = recording.paths("aten::add")
    assert path.count("Fold") == 4
