"""A minute of training: sampled times are those of the whole run, and nothing grows: `make soak`."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deepcontext
from deepcontext import Profile, _native
from deepcontext.collectors.jax import sampling as jax_sampling
from deepcontext.profiler.summaries.jax import operations as jax_operations

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.jax.conftest import Record

pytestmark = pytest.mark.soak
SECONDS = 60


def _loss(weights: list[Any], x: Any) -> Any:
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.sum(jax.nn.log_softmax(x)[:, 0] ** 2)


@jax.jit
def long_step(weights: list[Any], x: Any) -> Any:
    gradients = jax.grad(_loss)(weights, x)
    return [w - 1e-4 * g for w, g in zip(weights, gradients, strict=True)]


def _state(layers: int, width: int, rows: int) -> tuple[list[Any], Any]:
    return [jnp.eye(width) for _ in range(layers)], jnp.ones((rows, width))


class _Everything:
    """Traces between the windows, too, and sums up all operations of `jit_long_step`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.total_ps: dict[str, int] = defaultdict(int)
        self.count: dict[str, int] = defaultdict(int)
        self.between_s = self.inside_s = 0.0
        self.halves_ps: tuple[list[int], list[int]] = ([], [])  # runs of every other session
        self._session: Any = None
        self._opened = 0.0
        self._sessions = 0
        open_, close = jax_sampling.Sampler._open, jax_sampling.Sampler._close
        read = jax_sampling.Sampler._read

        def opening(sampler: Any) -> None:
            self._take(sampler)
            open_(sampler)

        def closing(sampler: Any, **options: Any) -> None:
            was_open = sampler._session is not None
            close(sampler, **options)
            if was_open and options["keep"] and sampler._session is None and not sampler._is_over:
                self._session, self._opened = sampler._make_session(), time.monotonic()

        def reading(sampler: Any, notes: Any, xspace: bytes, open_s: float) -> None:
            self.inside_s += open_s
            self._add(xspace)
            read(sampler, notes, xspace, open_s)

        monkeypatch.setattr(jax_sampling.Sampler, "_open", opening)
        monkeypatch.setattr(jax_sampling.Sampler, "_close", closing)
        monkeypatch.setattr(jax_sampling.Sampler, "_read", reading)

    def _take(self, sampler: Any) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            self.between_s += time.monotonic() - self._opened
            self._add(sampler._stop_session(session))

    def noise(self) -> float:
        """How far two halves of all runs differ: what the machine does to times, profiler or not."""
        first, second = (sum(half) / len(half) for half in self.halves_ps)
        return abs(first / second - 1)

    def _add(self, xspace: bytes) -> None:
        self._sessions += 1
        for run in _native.jax_read_runs(xspace):
            if run["module"] == "jit_long_step" and run["is_complete"]:
                spent_ps = sum(times[1] for times in run["operations"].values())
                self.halves_ps[self._sessions % 2].append(spent_ps)
                for name, (count, total_ps, *_) in run["operations"].items():
                    self.count[name] += count
                    self.total_ps[name] += total_ps


def test_sampled_times_are_within_a_tenth_of_those_of_all_steps(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = _Everything(monkeypatch)
    steps = 0

    def work() -> None:
        nonlocal steps
        weights, x = _state(12, 160, 128)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            weights = long_step(weights, x)
            jax.block_until_ready(weights)
            steps += 1

    recording = record(work, exact=False)
    assert recording.launches("long_step") == steps
    assert everything.inside_s < 0.25 * SECONDS  # the allowance is of events, not of seconds
    # While the traces between are read, nothing is traced.
    assert min(everything.count.values()) > 0.4 * steps
    operations = jax_operations.operations(recording.profile)
    sampled = {o.name: o.device_ns / o.executions for o in operations if "long_step" in o.program}
    means = {n: ps / 1000 / everything.count[n] for n, ps in everything.total_ps.items()}
    total = sum(means.values())
    large = {name: mean for name, mean in means.items() if mean >= 0.01 * total}
    print(f"{steps} steps, sampled {sum(sampled.values()) / total:.3f} of all", end="; ")
    print({name: round(sampled[name] / mean, 3) for name, mean in large.items()})
    assert len(large) >= 4
    if everything.noise() > 0.05:
        pytest.skip(
            f"equal halves of the run differ by {everything.noise():.0%}: not a quiet machine"
        )
    assert sum(sampled.values()) == pytest.approx(total, rel=0.10)
    for name, mean in large.items():
        assert sampled[name] == pytest.approx(mean, rel=0.10), name


def test_tree_file_and_memory_do_not_grow_with_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "out.dcprof"
    weights, x = _state(4, 32, 8)
    session = deepcontext.start(path, snapshot_interval=0, cpu_rate=0)

    def train(steps: int) -> tuple[Profile, int, int]:
        nonlocal weights
        for _ in range(steps):
            weights = long_step(weights, x)
            jax.block_until_ready(weights)
            session.step()
        session.snapshot()
        return Profile.load(path), path.stat().st_size, _resident_bytes()

    try:
        # From one line: another line would be another call path.
        (short, *short_bytes), (long, *long_bytes) = [train(steps) for steps in (2000, 98_000)]
    finally:
        deepcontext.stop()
    assert long.run.steps == 100_000
    assert len(long.tree) == len(short.tree)
    assert len(long.frames) == len(short.frames)
    print(f"file {short_bytes[0]} to {long_bytes[0]}, resident {short_bytes[1]} to {long_bytes[1]}")
    assert long_bytes[0] < 1.1 * short_bytes[0]
    assert long_bytes[1] < short_bytes[1] + 16 * 2**20  # XLA's tracer keeps its buffers
    launches = _sum(long, "program_launch_count", lambda name: name == "jit(long_step)")
    assert launches == 100_000


def _sum(profile: Profile, metric: str, accepts: Callable[[str], bool]) -> int:
    own = profile.exclusive(metric)
    return sum(int(own[n]) for n in range(len(own)) if own[n] and accepts(profile.frame(n).name))


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
