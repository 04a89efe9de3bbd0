"""What programs do around operators: threads, generators, tasks, exceptions, modes, compilers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format.frame import FrameKind, Phase

torch = pytest.importorskip("torch")
nn = torch.nn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def one() -> Any:
    return torch.ones(1)


class Failing(nn.Module):  # type: ignore[name-defined, misc]
    def forward(self, value: Any) -> Any:
        return torch.neg(value) @ torch.ones(7, 7)


def fail_and_go_on(rounds: int) -> None:
    module = nn.Sequential(nn.Identity(), Failing())
    for _ in range(rounds):
        try:
            module(one())
        except RuntimeError:
            torch.sin(one())
        torch.ceil(one())


def test_an_operator_that_raises_leaves_no_level_open(record: Any) -> None:
    recording = record(fail_and_go_on, 20)
    assert recording.paths("aten::sin") == [["fail_and_go_on: torch.sin(one())", "aten::sin"]]
    assert recording.paths("aten::ceil") == [["fail_and_go_on: torch.ceil(one())", "aten::ceil"]]
    (neg,) = recording.paths("aten::neg")
    assert neg == [
        "fail_and_go_on: module(one())",
        "Sequential",
        "Sequential.forward",
        "Failing '1'",
        "Failing.forward: return torch.neg(value) @ torch.ones(7, 7)",
        "aten::neg",
    ]
    assert recording.calls("aten::sin") == 20


class RaisesInBackward(torch.autograd.Function):  # type: ignore[name-defined, misc]
    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        torch.neg(gradient)
        raise ValueError("in backward")


def fail_in_backward() -> None:
    value = torch.ones(1, requires_grad=True)
    for _ in range(3):
        with pytest.raises(ValueError, match="in backward"):
            RaisesInBackward.apply(value).sum().backward()
        torch.sin(one())


def test_a_backward_that_raises(record: Any) -> None:
    recording = record(fail_in_backward)
    assert recording.paths("aten::sin") == [["fail_in_backward: torch.sin(one())", "aten::sin"]]
    (neg,) = recording.paths("aten::neg")
    assert neg[-3:] == [
        "BackwardCFunction.apply",
        "RaisesInBackward.backward: torch.neg(gradient)",
        "aten::neg",
    ]


def two_lines() -> None:
    first = helper()
    second = helper()
    del first, second


def helper() -> Any:
    return torch.neg(one())


def test_one_function_called_from_two_lines(record: Any) -> None:
    recording = record(two_lines)
    assert [path[0] for path in recording.paths("aten::neg")] == [
        "two_lines: first = helper()",
        "two_lines: second = helper()",
    ]


def twice_on_a_line() -> None:
    torch.neg(one()), torch.neg(one())


def test_two_calls_on_a_line_are_one_frame(record: Any) -> None:
    recording = record(twice_on_a_line)
    (node,) = recording.operators("aten::neg")
    assert recording.count(node) == 2


def descend(depth: int) -> Any:
    if depth == 0:
        return torch.neg(one())
    return descend(depth - 1)


def test_recursion_keeps_its_depth(record: Any) -> None:
    recording = record(descend, 5)
    (path,) = recording.paths("aten::neg")
    assert path == [
        *["descend: return descend(depth - 1)"] * 5,
        "descend: return torch.neg(one())",
        "aten::neg",
    ]


def produce() -> Iterator[Any]:
    for value in range(3):
        torch.neg(one())
        yield torch.full((1,), float(value))


def drive() -> None:
    source = produce()
    next(source)
    torch.sin(one())
    for item in source:
        torch.ceil(item)


def test_a_generator_runs_under_whoever_resumes_it(record: Any) -> None:
    recording = record(drive)
    body = ["produce: torch.neg(one())", "aten::neg"]
    assert recording.paths("aten::neg") == [
        ["drive: next(source)", *body],
        ["drive: for item in source:", *body],
    ]
    assert recording.paths("aten::sin") == [["drive: torch.sin(one())", "aten::sin"]]
    assert recording.paths("aten::ceil") == [["drive: torch.ceil(item)", "aten::ceil"]]


async def numbers() -> AsyncIterator[Any]:
    for _ in range(2):
        await asyncio.sleep(0)
        yield torch.neg(one())


async def consume(operator: Any) -> None:
    async for value in numbers():
        operator(value)


async def gather() -> None:
    await asyncio.gather(consume(torch.sin), consume(torch.ceil))


def run_loop() -> None:
    asyncio.run(gather())


def test_tasks_do_not_mix(record: Any) -> None:
    recording = record(run_loop)
    for name in ("aten::sin", "aten::ceil"):
        (path,) = recording.paths(name)
        assert path[-2:] == ["consume: operator(value)", name]
    (neg,) = recording.paths("aten::neg")
    assert neg[-3:] == [
        "consume: async for value in numbers():",
        "numbers: yield torch.neg(one())",
        "aten::neg",
    ]
    assert recording.calls("aten::neg") == 4


def work_in_pool() -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(40)))


def work(number: int) -> None:
    torch.neg(torch.full((1,), float(number)))


def test_a_pool_of_threads(record: Any) -> None:
    recording = record(work_in_pool)
    assert recording.calls("aten::neg") == 40
    for node in recording.operators("aten::neg"):
        path = recording.path(node)
        assert path[-2] == "work: torch.neg(torch.full((1,), float(number)))"
        assert recording.frame(recording.ancestors(node)[1]).kind == FrameKind.THREAD


def short_threads(count: int) -> None:
    for number in range(count):
        thread = threading.Thread(target=work, args=(number,), name=f"worker-{number}")
        thread.start()
        thread.join()
        while Path(f"/proc/self/task/{thread.native_id}").exists():  # it is still going
            time.sleep(0.001)


def threads_at_once() -> None:
    barrier = threading.Barrier(20)

    def work_and_meet() -> None:
        work(1)
        barrier.wait()

    threads = [threading.Thread(target=work_and_meet) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_come_and_go_share_one_tree(record: Any) -> None:
    record(threads_at_once)  # leaves a tree of each
    few = record(short_threads, 3)
    many = record(short_threads, 60)
    # The sampler's tree may hold a place for this or that thread.
    assert many.counters["nodes"] <= 3 * few.counters["nodes"]
    (node,) = many.operators("aten::neg")
    assert many.count(node) == 60
    # From CPython 3.14 the system knows the name that Python gives a thread.
    expected = "worker-N" if sys.version_info >= (3, 14) else "Thread"
    assert many.frame(many.ancestors(node)[1]).name == expected


def work_and_wait(begun: threading.Event, over: threading.Event) -> None:
    work(1)
    begun.set()
    over.wait()


def test_a_living_thread_has_its_name(record: Any) -> None:
    begun, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=work_and_wait, args=(begun, over), name="trainer")

    def start_thread() -> None:
        thread.start()
        begun.wait()

    recording = record(start_thread)
    over.set()
    thread.join()
    (node,) = recording.operators("aten::neg")
    assert recording.frame(recording.ancestors(node)[1]).name == "trainer"


class Nested(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.inner = Nested(depth - 1) if depth else nn.Identity()

    def forward(self, value: Any) -> Any:
        return torch.neg(self.inner(value))


def call(module: Any, value: Any) -> None:
    module(value)


def test_modules_nested_a_hundred_deep(record: Any) -> None:
    depth = 100
    recording = record(call, Nested(depth), one())
    names = [
        recording.text(node)
        for node in recording.nodes(FrameKind.MODULE)
        if recording.text(node).startswith("Nested")
    ]
    assert names == ["Nested"] + [
        "Nested '" + ".".join(["inner"] * level) + "'" for level in range(1, depth + 1)
    ]
    assert len(recording.operators("aten::neg")) == depth + 1
    assert recording.counters["paths_cut"] == 0


def very_deep(depth: int) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * depth)
    try:
        descend(depth)
        torch.sin(one())
    finally:
        sys.setrecursionlimit(limit)


def test_a_stack_deeper_than_the_walk_is_cut_and_said(record: Any) -> None:
    recording = record(very_deep, 3000)
    assert recording.counters["paths_cut"] > 0
    assert any("very deep stacks" in note for note in recording.profile.trust.notes)
    assert recording.paths("aten::sin") == [["very_deep: torch.sin(one())", "aten::sin"]]


def modes() -> None:
    value = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        torch.neg(value)
    with torch.inference_mode():
        torch.sin(value)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    with torch.device("meta"):
        torch.ceil(torch.ones(2))


def test_modes_do_not_hide_operators(record: Any) -> None:
    recording = record(modes)
    for name, line in (
        ("aten::neg", "torch.neg(value)"),
        ("aten::sin", "torch.sin(value)"),
        ("aten::mm", "torch.mm(torch.ones(2, 2), torch.ones(2, 2))"),
        ("aten::ceil", "torch.ceil(torch.ones(2))"),
    ):
        assert [f"modes: {line}", name] in [[p[0], p[-1]] for p in recording.paths(name)]


@torch.no_grad()  # type: ignore[untyped-decorator]
def decorated() -> None:
    torch.neg(one())


def test_torchs_own_decorators_are_not_shown(record: Any) -> None:
    recording = record(decorated)
    assert recording.paths("aten::neg") == [["decorated: torch.neg(one())", "aten::neg"]]


def scripted_math(value: Any) -> Any:
    return torch.neg(value) + torch.sin(value)


def use_jit(traced: Any) -> None:
    value = torch.ones(2, requires_grad=True)
    for _ in range(4):
        torch.neg(torch.ones(2))  # shows the number that the graph's node will get, makes none
        traced(value).sum().backward()


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_traced_function(record: Any) -> None:
    traced = torch.jit.trace(scripted_math, torch.ones(2))
    recording = record(use_jit, traced)
    assert recording.calls("aten::sin") >= 4
    for path in recording.paths("aten::sin"):
        assert path[0] == "use_jit: traced(value).sum().backward()"
    assert recording.counters["backward_links_missed"] == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_scripted_module(record: Any) -> None:
    """Its optimized gradient belongs to no one operator: it is counted, and put nowhere wrong."""
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.Tanh()))
    recording = record(use_jit, scripted)
    assert recording.calls("aten::linear") == 4
    graph = recording.paths("torch::jit::(anonymous namespace)::DifferentiableGraphBackward")
    assert recording.counters["backward_links_missed"] == sum(
        recording.count(node)
        for node in recording.operators()
        if "DifferentiableGraphBackward" in recording.frame(node).name
    )
    for path in graph:
        assert path[:3] == [
            "use_jit: traced(value).sum().backward()",
            "Tensor.backward",
            "backward",
        ]


def functional_gradients() -> None:
    def loss(weight: Any, value: Any) -> Any:
        return torch.tanh(value * weight).sum()

    values = torch.ones(3, 2)
    torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(torch.ones(2), values)


def test_function_transforms(record: Any) -> None:
    recording = record(functional_gradients)
    (path,) = {tuple(path[:1] + path[-1:]) for path in recording.paths("TanhBackward0")}
    assert path[-1] == "TanhBackward0"
    forward = "loss: return torch.tanh(value * weight).sum()"
    assert all(forward in path for path in recording.paths("TanhBackward0"))
    assert recording.counters["backward_links_missed"] == 0


class Structured(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(2, 2)

    def forward(self, batch: dict[str, Any], *, extra: tuple[Any, ...] = ()) -> dict[str, Any]:
        parts = [self.scale(item) for item in (*batch["items"], *extra)]
        return {"sum": sum(parts), "parts": parts}


def structured(model: Any) -> None:
    value = torch.ones(1, 2)
    result = model({"items": [value, value]}, extra=(value,))
    result["sum"].sum().backward()


def test_nested_arguments_and_comprehensions(record: Any) -> None:
    recording = record(structured, Structured())
    assert recording.calls("aten::linear") == 3
    assert recording.calls("AddmmBackward0") == 3
    text = 'parts = [self.scale(item) for item in (*batch["items"], *extra)]'
    for path in recording.paths("AddmmBackward0"):
        assert any(frame.endswith(text) for frame in path)


def generated(rounds: int) -> None:
    for number in range(rounds):
        scope: dict[str, Any] = {"torch": torch}
        exec(f"def made():\n    return torch.neg(torch.ones(1)) # {number % 2}\n", scope)
        scope["made"]()


def test_functions_compiled_in_a_loop_are_one_frame(record: Any) -> None:
    recording = record(generated, 200)
    (node,) = recording.operators("aten::neg")
    assert recording.count(node) == 200
    (path,) = recording.paths("aten::neg")
    assert path[-2:] == ["made", "aten::neg"]


def after_accumulation(weight: Any) -> None:
    torch.trunc(weight.grad)


def hooks_of_all_kinds() -> None:
    net = nn.Linear(2, 2)
    net.register_forward_pre_hook(lambda module, args: (torch.neg(args[0]),))
    net.register_forward_hook(lambda module, args, result: torch.sin(result))
    net.register_full_backward_hook(lambda module, into, out: (torch.ceil(into[0]),))
    net.weight.register_hook(lambda gradient: torch.floor(gradient))
    net.weight.register_post_accumulate_grad_hook(after_accumulation)
    value = torch.ones(1, 2, requires_grad=True)
    net(value).sum().backward()


@pytest.mark.parametrize(
    ("name", "hook"),
    [
        ("aten::neg", "<lambda>: net.register_forward_pre_hook("),
        ("aten::sin", "<lambda>: net.register_forward_hook("),
        ("aten::ceil", "<lambda>: net.register_full_backward_hook("),
        ("aten::floor", "<lambda>: net.weight.register_hook("),
        ("aten::trunc", "after_accumulation: torch.trunc(weight.grad)"),
    ],
)
def test_operators_of_hooks_are_under_the_hook(record: Any, name: str, hook: str) -> None:
    recording = record(hooks_of_all_kinds)
    node = next(node for node in recording.operators(name))
    path = recording.path(node)
    assert path[0] == "hooks_of_all_kinds: net(value).sum().backward()"
    assert path[-2].startswith(hook)
    is_forward = "forward" in hook
    assert ("Linear" in path) == (is_forward or "full_backward" in hook)
    assert recording.phase(node) == (Phase.FORWARD if is_forward else Phase.BACKWARD)
    assert recording.counters["backward_links_missed"] == 0
