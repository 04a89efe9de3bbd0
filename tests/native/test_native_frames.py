"""Native frames take their places between Python frames, on every CPython: by address, not by name.

What is around them (operators, launches, files, the trust report) is tested in tests/collectors and
tests/integration/torch.
"""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fakes"))
import native_chain

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.skipif(
    not _native.native_is_supported(), reason="native frames need x86-64 or aarch64"
)
CHAIN = native_chain.native(native_chain.OUTER)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return native_chain.load(native_chain.build(tmp_path_factory.mktemp("chain")))


def recorded(work: Callable[[], None]) -> list[list[str]]:
    """Paths of the marks that `work` made, from `work` on, with frames of the chain and Python."""
    _native.begin(100_000)
    _native.native_start()
    try:
        work()
    finally:
        _native.native_stop()
        _native.end()
    reading = _native.read_tree(())
    frames, nodes = reading.frame_columns(), reading.node_columns(b"")
    name, file = (array("I", frames[column]).tolist() for column in ("name", "file"))
    strings = frames["strings"]
    paths: list[list[str]] = []
    marks = []
    parents, frame_of = array("i", nodes["parent"]), array("I", nodes["frame"])
    for parent, frame in zip(parents, frame_of, strict=True):
        path = list(paths[parent]) if parent >= 0 else []
        kind, text = FrameKind(frames["kind"][frame]), strings[name[frame]]
        if kind is not FrameKind.NATIVE or "libnative_chain" in strings[file[frame]]:
            path.append(f"{kind.label} {text.rpartition('<locals>.')[2]}")
        paths.append(path)
        if kind is FrameKind.MARKER:
            marks.append(path[path.index("python work") :])
    return marks


@native_chain.WORK
def mark(*_: object) -> None:
    _native.count_event("mark")


def call(chain: ctypes.CDLL, work: object) -> None:
    chain.chain_outer(native_chain.address(work), None, 0, 0)


def test_from_python_through_native_to_python(chain: ctypes.CDLL) -> None:
    def work() -> None:
        call(chain, mark)

    assert recorded(work) == [["python work", "python call", *CHAIN, "python mark", "marker mark"]]


def test_twice_through_native(chain: ctypes.CDLL) -> None:
    @native_chain.WORK
    def called_back(*_: object) -> None:
        call(chain, mark)

    def work() -> None:
        call(chain, called_back)

    assert recorded(work) == [
        [
            "python work",
            "python call",
            *CHAIN,
            "python called_back",
            "python call",
            *CHAIN,
            "python mark",
            "marker mark",
        ]
    ]


def test_through_objects_that_are_called_and_generators(chain: ctypes.CDLL) -> None:
    """Both make the interpreter's loop run anew, or not, depending on the version."""

    class Called:
        def __call__(self, depth: int) -> None:
            if depth:
                self(depth - 1)
            else:
                list(numbers())

    def called(depth: int) -> None:
        Called()(depth)

    def numbers() -> Generator[int]:
        call(chain, mark)
        yield 1

    def work() -> None:
        for _ in map(called, [2]):
            pass

    assert recorded(work) == [
        [
            "python work",
            "python called",
            *["python Called.__call__"] * 3,
            "python numbers",
            "python call",
            *CHAIN,
            "python mark",
            "marker mark",
        ],
    ]


def test_without_native_between_nothing_is_added() -> None:
    def work() -> None:
        for _ in map(_native.count_event, ["mark"]):
            pass

    (path,) = recorded(work)
    assert not any(frame.startswith("native ") for frame in path)
