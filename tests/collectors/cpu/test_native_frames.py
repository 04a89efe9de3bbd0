"""Native frames between Python frames, in a library of known depth; no framework is needed."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deepcontext
from deepcontext import _native
from deepcontext.profiler.format.frame import FrameKind

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fakes"))
import native_chain

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

pytestmark = pytest.mark.skipif(
    not _native.native_is_supported(), reason="native frames need x86-64 or aarch64"
)
CHAIN = "libnative_chain"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_chain.build(tmp_path_factory.mktemp("chain"))


def recorded(work: Callable[[], None], **options: object) -> deepcontext.Profile:
    was_collecting = gc.isenabled()
    gc.disable()  # where another test has imported torch, each collection is an event with a walk
    deepcontext.start(**{"cpu_rate": 0, "native": True, **options})  # type: ignore[arg-type]
    try:
        work()
    finally:
        profile = deepcontext.stop()
        if was_collecting:
            gc.enable()
    return profile


def marks(profile: deepcontext.Profile, name: str = "mark") -> list[list[str]]:
    """Paths of the events `name` below the recorded function, frames of ctypes left out."""
    found = []
    for node in range(len(profile.tree)):
        if profile.frame(node).kind is FrameKind.MARKER and profile.frame(node).name == name:
            path = native_chain.path(profile, node, CHAIN)
            found.append(path[path.index("python recorded") + 1 :])
    return found


def test_frames_between_python_frames_are_in_the_order_of_the_calls(library: Path) -> None:
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    @native_chain.WORK
    def called_back(*_: object) -> None:
        again()

    def again() -> None:
        chain.chain_outer(native_chain.address(innermost), None, 0, 0)

    def work() -> None:
        chain.chain_deep(2, native_chain.address(called_back), None, 0, 0)

    (path,) = marks(recorded(work))
    assert path == [
        "python work",
        "native chain_deep",
        *["native chain::deep"] * 3,
        "python called_back",
        "python again",
        *native_chain.native(native_chain.OUTER),
        "python innermost",
        "marker mark",
    ]


def test_without_the_option_there_are_none(library: Path) -> None:
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    def work() -> None:
        chain.chain_outer(native_chain.address(innermost), None, 0, 0)

    profile = recorded(work, native=False)
    assert marks(profile) == [["python work", "python innermost", "marker mark"]]
    assert not (profile.frames.kind == FrameKind.NATIVE).any()
    assert "native_files" not in profile.sections
    (report,) = (c for c in profile.trust.collectors if c.name == "native frames")
    assert report.status == "off"


def test_scopes_and_generators_are_parts_of_one_order(library: Path) -> None:
    chain = native_chain.load(library)

    def numbers() -> Generator[None]:
        for _ in range(2):
            _native.count_event("mark")
            yield

    @native_chain.WORK
    def called_back(*_: object) -> None:
        with deepcontext.scope("inside"):
            for _number in numbers():
                pass

    def work() -> None:
        with deepcontext.scope("outside"):
            chain.chain_outer(native_chain.address(called_back), None, 0, 0)

    (path,) = marks(recorded(work))
    assert path == [
        "python work",
        "scope outside",
        "python work",
        *native_chain.native(native_chain.OUTER),
        "python called_back",
        "scope inside",
        "python called_back",
        "python numbers",
        "marker mark",
    ]


def test_one_caller_from_two_lines_is_two_paths(library: Path) -> None:
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    def work() -> None:
        chain.chain_outer(native_chain.address(innermost), None, 0, 0)
        chain.chain_outer(native_chain.address(innermost), None, 0, 0)
        chain.chain_deep(0, native_chain.address(innermost), None, 0, 0)

    profile = recorded(work)
    assert len(marks(profile)) == 3
    lines = {
        profile.frame(node).line
        for node in range(len(profile.tree))
        if profile.frame(node).name.endswith("work")
    }
    assert len(lines) == 3


def test_interpreter_and_profiler_are_not_shown(library: Path) -> None:
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    profile = recorded(lambda: chain.chain_outer(native_chain.address(innermost), None, 0, 0))
    files = {Path(frame.file).name for frame in profile.frames if frame.kind is FrameKind.NATIVE}
    assert "libnative_chain.so" in files
    hidden = ("libpython", "python3", "_native.")
    assert not [file for file in files if file.startswith(hidden)]


def test_a_stripped_library_keeps_file_offset_and_build_id(tmp_path: Path) -> None:
    library = native_chain.build(
        tmp_path, "-s", "-Wl,--build-id=0xabcdef0123", "-fvisibility=hidden"
    )
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    profile = recorded(lambda: chain.chain_outer(native_chain.address(innermost), None, 0, 0))
    (path,) = marks(profile)
    native = [frame.removeprefix("native ") for frame in path if frame.startswith("native ")]
    assert native[0] == "chain_outer"  # exported
    assert len(native) == len(native_chain.OUTER)
    assert all(name.startswith("libnative_chain.so+0x") for name in native[1:])
    assert len(set(native)) == len(native)
    files = {file["file"]: file for file in json.loads(profile.sections["native_files"])}
    own = files[str(library)]
    assert own["build_id"] == "abcdef0123"
    assert (own["functions"], own["named"]) == (4, 1)


def test_a_library_unloaded_and_another_in_its_place(tmp_path: Path) -> None:
    close = ctypes.CDLL(None).dlclose
    close.argtypes = (ctypes.c_void_p,)
    turns, calls = 6, 200
    # Other code at the same places.
    flags = (("-O2",), ("-O2", "-DCHAIN_OTHER=1"))
    libraries = []
    for turn in range(turns):
        (tmp_path / str(turn)).mkdir()
        libraries.append(native_chain.build(tmp_path / str(turn), *flags[turn % 2]))
    places = []

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    def work() -> None:
        for library in libraries:
            chain = native_chain.load(library)
            places.append(native_chain.address(chain.chain_outer))
            for _ in range(calls):
                chain.chain_outer(native_chain.address(innermost), None, 0, 0)
            close(chain._handle)

    profile = recorded(work)
    rows = profile.metrics["call_duration_ns"]
    right = 0
    for node, count in zip(rows.node.tolist(), rows.count.tolist(), strict=True):
        path = native_chain.path(profile, node, CHAIN)
        if path[-6:-2] == native_chain.native(native_chain.OUTER):
            right += count
    assert len(set(places)) < turns  # else this shows nothing
    # A thread looks for unloaded libraries once in 64 walks.
    assert right >= turns * (calls - 64)
    assert profile.trust.counters["native_walks"] == turns * calls


def test_deep_native_recursion_is_cut_and_said(library: Path) -> None:
    chain = native_chain.load(library)

    @native_chain.WORK
    def innermost(*_: object) -> None:
        _native.count_event("mark")

    def work() -> None:
        chain.chain_deep(5000, native_chain.address(innermost), None, 0, 0)

    profile = recorded(work)
    (path,) = marks(profile)
    assert path[0] == "python work"
    assert path[-2:] == ["python innermost", "marker mark"]
    assert 500 < path.count("native chain::deep") < 2048
    assert profile.trust.counters["native_walks_ended_too_deep"] == 1
    assert any("native stacks could not be walked" in note for note in profile.trust.notes)


STRESS = """
import os
import sys
import threading
import deepcontext
from deepcontext import _native
sys.path.insert(0, sys.argv[2])
import native_chain

chain = native_chain.load(sys.argv[1])
sys.setrecursionlimit(3000)

@native_chain.WORK
def leaf(*_):
    _native.count_event("mark")

def down(depth):
    if depth:
        return down(depth - 1)
    chain.chain_outer(native_chain.address(leaf), None, 0, 0)

def numbers():
    for depth in range(5):
        down(depth)
        yield depth

class Call:
    def __call__(self, depth):
        return self(depth - 1) if depth else down(3)

@native_chain.WORK
def nested(*_):
    for _ in numbers():
        pass

def work():
    down(200)
    Call()(60)
    chain.chain_deep(50, native_chain.address(nested), None, 0, 0)
    list(numbers())

deepcontext.start(sys.argv[3], native=True, snapshot_interval=0.05)
for _ in range(2):
    threads = [threading.Thread(target=work) for _ in range(100)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            work()
            os._exit(0)
        children.append(child)
    for thread in threads:
        thread.join()
    assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)
deepcontext.stop()
"""


def test_threads_recursion_generators_and_forks(library: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.dcprof"
    fakes = str(Path(native_chain.__file__).parent)
    subprocess.run(
        [sys.executable, "-c", STRESS, str(library), fakes, str(output)], check=True, timeout=300
    )
    profile = deepcontext.Profile.load(output)
    rows = profile.metrics["call_duration_ns"]
    marked = [
        (native_chain.path(profile, node, CHAIN), count)
        for node, count in zip(rows.node.tolist(), rows.count.tolist(), strict=True)
        if profile.frame(node).name == "mark"
    ]
    assert sum(count for _, count in marked) == 200 * 12
    for path, _ in marked:
        # Native frames lie between the two Python frames wherever the mark was reached from.
        assert path[-6:-2] == native_chain.native(native_chain.OUTER), path
        assert path[-7] == "python down", path
    assert profile.trust.counters["native_walks_ended_without_table"] == 0
