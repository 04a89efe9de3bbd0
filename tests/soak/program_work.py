"""The work of the threads in the session soak.

Each function repeats work that is hard to profile and checks the results, until told to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import deepcontext

try:
    import greenlet
except ImportError:
    greenlet = None
try:
    import torch
except ImportError:  # the sanitizers' environment has no framework
    torch = None
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")  # for collectives
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, PartitionSpec
except ImportError:
    jax = None

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

has_jax = jax is not None
CHILD_STATUS = 7
# A child that takes longer hangs: it has a second's work, and the machine may be very busy.
CHILD_TIMEOUT_S = 60.0
_DEPTH = 3000


def plain_python() -> None:
    """Loops, exceptions and generators resumed from two callers."""

    def inner(count: int) -> Iterator[int]:
        yield from range(count)

    def outer(count: int) -> Iterator[int]:
        yield from inner(count)
        raise ValueError(count)

    for count in range(50):
        seen = 0
        generator = outer(count)
        try:
            seen += next(generator)
            for value in generator:
                seen += value
        except ValueError as error:
            seen += error.args[0] - count
        except StopIteration:  # it ends with its ValueError
            seen = -1
        assert seen == sum(range(count))


def deep_recursion() -> None:
    """A stack deeper than a sample keeps."""

    def down(left: int) -> int:
        return down(left - 1) + 1 if left else 0

    assert down(_DEPTH) == _DEPTH


def dying_code() -> None:
    """Code objects that are freed while a sample may point at them."""
    for number in range(30):
        space: dict[str, object] = {}
        exec(f"def f(x):\n    return sum(range(x)) + {number % 5}\nvalue = f(200)", space)
        assert space["value"] == 19_900 + number % 5


def coroutines() -> None:
    """Some hundred tasks of an event loop."""

    async def leaf(count: int) -> int:
        await asyncio.sleep(0)
        return sum(range(count))

    async def main() -> None:
        for count in range(10):
            assert sum(await asyncio.gather(*(leaf(count) for _ in range(20)))) == 20 * sum(
                range(count)
            )

    asyncio.run(main())


def greenlets() -> None:
    """Stacks that are swapped under the interpreter."""
    assert greenlet is not None

    def body(count: int) -> int:
        for turn in range(count):
            greenlet.getcurrent().parent.switch(sum(range(turn)))
        return -1

    for count in range(20):
        worker = greenlet.greenlet(body)
        seen = [worker.switch(count)]
        while not worker.dead:
            seen.append(worker.switch())
        assert seen[-1] == -1
        assert len(seen) == count + 1


def short_threads() -> None:
    """Threads that come and go."""
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(sum(range(2000)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [sum(range(2000))] * 8


def waiting() -> None:
    """A thread that does not run, and must not be woken."""
    begun = time.monotonic()
    time.sleep(0.02)
    assert time.monotonic() - begun >= 0.02
    threading.Event().wait(0.01)


def marks() -> None:
    """Scopes and steps while sessions begin and end."""
    for name in ("train", "evaluate"):
        with deepcontext.scope(name), deepcontext.scope("inner"):
            deepcontext.step()
    time.sleep(0.001)


def crossing_ranges() -> None:
    """Ranges that end in another order than they began, and on another thread."""
    makers: list[Callable[[str], Any]] = [deepcontext.scope]
    if torch is not None:
        makers.append(torch.profiler.record_function)

    def within(name: str, count: int) -> Generator[int, None, None]:
        with random.choice(makers)(name):
            yield from range(count)

    with _framework_lock:
        assert list(zip(within("left", 9), within("right", 8), strict=False))[-1] == (7, 7)
        open_ranges = [random.choice(makers)(name) for name in "abcd"]
        for each in open_ranges:
            each.__enter__()
        random.shuffle(open_ranges)
        for each in open_ranges:
            each.__exit__(None, None, None)
        waiting_range = within("waits", 2)
        next(waiting_range)
        closer = threading.Thread(target=waiting_range.close)
        closer.start()
        closer.join()


def processes() -> None:
    """Started programs have neither a signal handler of the profiler nor any other trace of it."""
    code = "import signal, sys; sys.exit(signal.getsignal(signal.SIGURG) != signal.SIG_DFL)"
    assert subprocess.run([sys.executable, "-S", "-c", code], check=False).returncode == 0
    time.sleep(0.2)


# PyTorch keeps its observers behind a lock that it does not hold across a fork, and XLA has locks like
# it: a child may not use them when another thread was inside. One that begins a session does.
_framework_lock = threading.RLock()


def torch_training() -> None:
    """Forward, backward and optimizer of a small model."""
    with _framework_lock:
        _train()


def _train() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.ones(4, 16)
    for _ in range(5):
        optimizer.zero_grad()
        model(batch).square().sum().backward()
        optimizer.step()
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


_handed: queue.SimpleQueue[object] = queue.SimpleQueue()


def torch_handing() -> None:
    """Tensors that another thread frees."""
    with _framework_lock:
        for size in range(1, 40):
            _handed.put(torch.full((size,), 1.0))

    def take() -> None:
        with _framework_lock:
            for _ in range(39):
                tensor = _handed.get()
                assert float(tensor.sum()) == tensor.numel()  # type: ignore[attr-defined]

    taker = threading.Thread(target=take)
    taker.start()
    taker.join()


def jax_training() -> None:
    """Steps of one program, with what is copied and waited for."""
    with _framework_lock:
        weights = jnp.ones((8, 8))
        for _ in range(20):
            weights = _jax_step(weights, jnp.ones((4, 8)))
        assert bool(jnp.isfinite(jax.device_get(weights)).all())


def _jax_step(weights: Any, batch: Any) -> Any:
    def loss(weights: Any) -> Any:
        return jnp.square(jnp.tanh(batch @ weights)).mean()

    if "step" not in _jitted:
        _jitted["step"] = jax.jit(lambda weights: weights - 0.1 * jax.grad(loss)(weights))
    return _jitted["step"](weights)


_jitted: dict[str, Any] = {}


def jax_collectives() -> None:
    """Devices that wait for one another, in groups of either half of a mesh and of all."""
    with _framework_lock:
        count = len(jax.devices())
        if "collectives" not in _jitted:
            mesh = Mesh(np.array(jax.devices()).reshape(count // 2, 2), ("outer", "inner"))
            spec = PartitionSpec(("outer", "inner"))

            def exchange(values: Any) -> Any:
                halves = jax.lax.psum(values, "inner") + jax.lax.psum(values, "outer")
                return halves + jax.lax.all_gather(values, ("outer", "inner")).sum()

            _jitted["collectives"] = jax.jit(
                jax.shard_map(exchange, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
            )
        for _ in range(5):
            summed = jax.device_get(_jitted["collectives"](jnp.ones(count)))
            assert (summed == 2 + count // 2 + count).all(), summed


def jax_compiling() -> None:
    """Programs that are compiled, run twice and forgotten."""
    with _framework_lock:
        size = random.randrange(2, 50)
        program = jax.jit(lambda values: jnp.sin(values).sum() * size)
        values = jnp.zeros(size)
        assert float(program(values)) == float(program(values)) == 0.0
        del program
        gc.collect()


def fork_from_a_thread() -> None:
    """Forks while all other threads are anywhere."""
    fork_once(with_session=False)
    time.sleep(0.05)


def works() -> tuple[Callable[[], None], ...]:
    """What a thread may do here, with what is installed."""
    plain = (
        plain_python,
        deep_recursion,
        dying_code,
        coroutines,
        short_threads,
        waiting,
        marks,
        crossing_ranges,
        processes,
        fork_from_a_thread,
    )
    with_greenlet = () if greenlet is None else (greenlets,)
    with_torch = () if torch is None else (torch_training, torch_handing)
    with_jax = (jax_training, jax_compiling, jax_collectives) if has_jax else ()
    return plain + with_greenlet + with_torch + with_jax


def fork_once(*, with_session: bool) -> None:
    """Fork a child that works, and has a session of its own or none; it has to end by itself."""
    with _framework_lock if with_session else contextlib.nullcontext():
        try:
            child = os.fork()
        except RuntimeError as error:
            # filelock, which PyTorch uses, refuses forks while a thread of the program opens a lock.
            if "filelock" in str(error):
                return
            raise
    if child == 0:
        status = 1
        try:
            status = _child(with_session=with_session)
        finally:
            os._exit(status)
    end = time.monotonic() + CHILD_TIMEOUT_S
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            _report_hang(child)
            return
        time.sleep(0.001)
    assert os.waitstatus_to_exitcode(status) == CHILD_STATUS, status


def _child(*, with_session: bool) -> int:
    signal.setitimer(signal.ITIMER_PROF, 0)
    kept = [bytes(size) for size in range(2000)]
    plain_python()
    if with_session:
        deepcontext.start(cpu_rate=500, memory=False)
        dying_code()
        deepcontext.stop()
    return CHILD_STATUS if len(kept) == 2000 else 2


hangs_in_sanitizer: list[str] = []  # stacks


def _report_hang(child: int) -> None:
    """Kill a child that hangs, and say where it did.

    GCC's AddressSanitizer has a lock in its allocator that its fork() does not take: see
    CONTRIBUTING.md. A child whose stack shows that is not a failure; any other is.
    """
    words = ["gdb", "-p", str(child), "-batch", "-ex", "thread apply all bt 25"]
    plainly = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        shown = subprocess.run(words, capture_output=True, text=True, check=False, env=plainly)
        stack = shown.stdout
    except FileNotFoundError:
        stack = "no gdb here to show it"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    innermost = [line for line in stack.splitlines() if line.startswith("#")][:4]
    if any(re.search(r"__sanitizer::.*(Mutex|Semaphore)", line) for line in innermost):
        hangs_in_sanitizer.append("\n".join(innermost))
    else:
        raise AssertionError(f"a forked child hangs\n{stack}")
