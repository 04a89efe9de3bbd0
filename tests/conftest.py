"""Fixtures every test may use: golden texts, profiles made to measure, and a tidiness check."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import hypothesis
import numpy as np
import pytest

from deepcontext.profiler.format.frame import Frame, Phase
from deepcontext.profiler.format.metric import CALL_DURATION_NS, HOST_TIME_NS, STEP_TIME_NS
from deepcontext.profiler.model.metric_rows import MetricRows
from deepcontext.profiler.model.metric_table import MetricTable
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.tree import Tree
from deepcontext.profiler.model.trust import TrustReport
from tests.synthetic import frame_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deepcontext.profiler.format.metric import MetricDescriptor

GOLDEN = Path(__file__).parent / "golden"
# Frameworks set these when they are imported or compile; they are theirs, not a test's.
_TEMPORARY = f"{tempfile.gettempdir()}/tmp"
_FRAMEWORK_VARIABLES = ("TORCH", "PYTORCH", "KMP_", "OMP_", "TRITON", "XLA_", "JAX_", "TF_")


# An example takes as long as a busy machine makes it take.
hypothesis.settings.register_profile("any speed", deadline=None)
hypothesis.settings.load_profile("any speed")

# Started with nohup or in the background, the tests would hand ignored signals down to the programs
# they run.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the tests produce to tests/golden instead of comparing with it",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file whose name is the command that made it."""
    update = request.config.getoption("--update-golden")

    def check(command: str, text: str) -> None:
        path = GOLDEN / f"{command}.txt"
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no golden file '{path.name}'; run pytest --update-golden once"
        assert text == path.read_text(encoding="utf-8"), (
            f"differs from tests/golden/{path.name}; when the change is wanted, run "
            "pytest --update-golden and read the diff"
        )

    return check


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """A test leaves no hook, thread, environment variable or import path behind."""
    before = _process_state()
    yield
    after = _process_state()
    assert after == before


def _process_state() -> dict[str, object]:
    return {
        "environment": {
            name: value
            for name, value in os.environ.items()
            if not name.startswith((*_FRAMEWORK_VARIABLES, "PYTEST_"))
        },
        "threads": sorted(
            thread.name for thread in threading.enumerate() if not thread.name.startswith("pydevd")
        ),
        "trace": sys.gettrace() is None,
        "profile": sys.getprofile() is None,
        # torch 2.6 leaves a temporary folder there when its compiler is first imported.
        "import path": tuple(path for path in sys.path if not path.startswith(_TEMPORARY)),
        "working directory": Path.cwd(),
    }


class MakeProfile(Protocol):
    """Builds a profile; see `make_profile`."""

    def __call__(  # noqa: PLR0913  keywords with defaults
        self,
        parents: Sequence[int],
        frames: Sequence[Frame],
        *,
        phases: Sequence[Phase] | None = None,
        host_time_ns: dict[int, int] | None = None,
        call_samples_ns: dict[int, Sequence[int]] | None = None,
        step_samples_ns: Sequence[int] = (),
        run: RunInfo | None = None,
        trust: TrustReport | None = None,
    ) -> Profile: ...


@pytest.fixture(scope="session")
def make_profile() -> MakeProfile:
    """Return a function that builds a profile from one frame a node.

    `parents[i]` is the parent of node i (its own entry is ignored for node 0, the root), with
    `parents[i] < i`; nodes keep these numbers only where they are in pre-order already.
    `host_time_ns` gives exclusive values by node, `call_samples_ns` the single calls of a node.
    """
    return _make_profile


def _make_profile(  # noqa: PLR0913  keywords with defaults
    parents: Sequence[int],
    frames: Sequence[Frame],
    *,
    phases: Sequence[Phase] | None = None,
    host_time_ns: dict[int, int] | None = None,
    call_samples_ns: dict[int, Sequence[int]] | None = None,
    step_samples_ns: Sequence[int] = (),
    run: RunInfo | None = None,
    trust: TrustReport | None = None,
) -> Profile:
    distinct = list(dict.fromkeys(frames))
    number = {frame: index for index, frame in enumerate(distinct)}
    tree, order = Tree.from_parents(
        np.array(parents, np.int32),
        np.array([number[frame] for frame in frames], np.uint32),
        np.array(phases or [Phase.NONE] * len(frames), np.uint8),
    )
    position = np.argsort(order)
    calls = {int(position[n]): list(v) for n, v in (call_samples_ns or {}).items()}
    times = {int(position[n]): [v] for n, v in (host_time_ns or {}).items()}
    for node, samples in calls.items():
        times.setdefault(node, [0])
        times[node] += [0] * (len(samples) - len(times[node]))
    metrics = {
        HOST_TIME_NS.name: _rows(HOST_TIME_NS, times),
        CALL_DURATION_NS.name: _rows(CALL_DURATION_NS, calls),
    }
    if step_samples_ns:
        metrics[STEP_TIME_NS.name] = _rows(STEP_TIME_NS, {0: list(step_samples_ns)})
    return Profile(
        frames=frame_table(distinct),
        tree=tree,
        metrics=MetricTable(metrics),
        run=run or RunInfo(),
        trust=trust or TrustReport(),
        sections={},
    )


def _rows(descriptor: MetricDescriptor, samples: dict[int, list[int]]) -> MetricRows:
    nodes = sorted(samples)
    is_spread = descriptor is not HOST_TIME_NS

    def column(dtype: Any, value: Callable[[list[int]], float]) -> Any:
        return np.array([value(samples[node]) for node in nodes], dtype)

    return MetricRows(
        descriptor,
        node=np.array(nodes, np.uint32),
        count=column(np.uint64, len),
        total=column(np.int64, sum),
        minimum=column(np.int64, min) if is_spread else None,
        maximum=column(np.int64, max) if is_spread else None,
        m2=column(np.float64, lambda s: len(s) * float(np.var(s))) if is_spread else None,
    )
