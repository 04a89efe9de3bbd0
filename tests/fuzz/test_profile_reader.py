"""Random damage to profile files, for FUZZ_S seconds each (100 by default).

Whatever the bytes are, reading gives a profile or a ProfileDataError: no other exception, no more
than 256 MiB, no more than two seconds. A failure prints the seed that repeats it.
"""

from __future__ import annotations

import os
import random
import resource
import time
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.store.messages import message_class
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUDGET_S = float(os.environ.get("FUZZ_S", "100"))
MEMORY_BYTES = 256 * 2**20
CASE_S = 2.0
INTERESTING = (0, 1, 2, 127, 128, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
TABLES = {"FrameTable": "frames", "NodeTable": "nodes"}


@pytest.fixture(scope="module")
def corpus() -> list[bytes]:
    """Sound files: one node; some; enough for compressed columns."""
    return [
        random_profile(nodes, seed=nodes).with_section("findings", b"[1, 2, 3]").to_bytes()
        for nodes in (1, 12, 400)
    ]


def mutate_bytes(random_: random.Random, content: bytes) -> bytes:
    """Apply a few of: flip, overwrite, insert, delete, repeat, cut."""
    mutable = bytearray(content)
    for _ in range(random_.choice((1, 1, 1, 2, 4, 16))):
        at = random_.randrange(len(mutable) + 1)
        size = random_.choice((1, 1, 2, 4, 8, 64))
        match random_.randrange(6):
            case 0:
                mutable[at : at + 1] = bytes(
                    byte ^ (1 << random_.randrange(8)) for byte in mutable[at : at + 1]
                )
            case 1:
                mutable[at : at + size] = random_.randbytes(size)
            case 2:
                mutable[at:at] = random_.randbytes(size)
            case 3:
                del mutable[at : at + size]
            case 4:
                start = random_.randrange(len(mutable) + 1)
                mutable[at:at] = mutable[start : start + size]
            case _:
                del mutable[at:]
    return bytes(mutable)


def mutate_body_bytes(random_: random.Random, content: bytes) -> bytes:
    """Damage the body and make its checksum fit."""
    return framed(random_, mutate_bytes(random_, outer_of(content).body))


def mutate_columns(random_: random.Random, content: bytes) -> bytes:
    """Change numbers, types and counts of well-formed columns: what the parser lets through."""
    body: Any = message_class("ProfileBody").FromString(outer_of(content).body)
    columns = list(columns_of(body))
    for _ in range(random_.choice((1, 1, 2, 3))):
        mutate_column(random_, random_.choice(columns), random_.choice(columns))
    if random_.random() < 0.2:
        del body.strings[random_.randrange(len(body.strings)) :]
    if random_.random() < 0.1:
        body.metrics.add().CopyFrom(random_.choice(body.metrics))
    return framed(random_, body.SerializeToString())


def columns_of(body: Any) -> Iterator[Any]:
    for message, table in TABLES.items():
        for field in schema.MESSAGES[message]:
            yield getattr(getattr(body, table), field.name)
    for metric in body.metrics:
        for field in schema.MESSAGES["Metric"]:
            if field.type == "Column" and metric.HasField(field.name):
                yield getattr(metric, field.name)


def mutate_column(random_: random.Random, column: Any, other: Any) -> None:
    match random_.randrange(6):
        case 0:
            column.count = random_.choice((
                column.count + 1,
                max(column.count - 1, 0),
                *INTERESTING,
            ))
        case 1:
            column.type = random_.choice((*schema.COLUMN_TYPES.values(), 0, 99))
        case 2:
            column.encoding = random_.choice((0, 1, 2))
        case 3:
            column.CopyFrom(other)
        case 4:
            mutate_numbers(random_, column)
        case _:
            # A bomb: far more behind the bytes than anybody declared, or all of it declared.
            size = random_.choice((2**10, 2**20, 2**24))
            column.data = zlib.compress(bytes(size))
            column.encoding = schema.ENCODINGS["ZLIB"]
            if random_.random() < 0.5:
                column.count = size // 4


def mutate_numbers(random_: random.Random, column: Any) -> None:
    """Overwrite elements, keeping a column well-formed that is."""
    try:
        data = bytearray(zlib.decompress(column.data) if column.encoding else column.data)
    except zlib.error:  # another mutation came first
        return
    size = len(data) // max(column.count, 1)
    for _ in range(random_.choice((1, 1, 2, 8))):
        if column.count and size:
            at = size * random_.randrange(column.count)
            near = int.from_bytes(data[at : at + size], "little") + random_.randint(-3, 3)
            value = random_.choice((near, random_.choice(INTERESTING)))
            data[at : at + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
    column.data = zlib.compress(bytes(data)) if column.encoding else bytes(data)


def outer_of(content: bytes) -> Any:
    return message_class("ProfileFile").FromString(content)


def framed(random_: random.Random, body: bytes) -> bytes:
    outer = {
        "format": schema.FORMAT,
        "major": schema.MAJOR,
        "minor": schema.MINOR + random_.randrange(2),
        "body_crc32": zlib.crc32(body),
        "body": body,
    }
    return wire.encode("ProfileFile", outer)


@contextmanager
def limited_memory(most_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """Let the process grow by so much at most; beyond, allocation raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    allowed = pages * resource.getpagesize() + most_bytes
    resource.setrlimit(resource.RLIMIT_AS, (allowed, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def use(content: bytes) -> bool:
    """Read a file and everything that is decoded late; return whether it was a profile."""
    try:
        profile = Profile.from_bytes(content, source="fuzzed.dcprof")
        for name in profile.metrics:
            profile.inclusive(name)
            profile.query().kind("operator").table(name, by="line", limit=5)
        plain = profile.to_dict()
        written = profile.to_bytes()  # decodes the columns that nothing above needs
    except ProfileDataError as error:
        assert str(error).startswith("cannot read 'fuzzed.dcprof': ")  # noqa: PT017  may not raise
        return False
    assert Profile.from_bytes(written).to_dict() == plain
    return True


@pytest.mark.fuzz
@pytest.mark.timeout(BUDGET_S + 120)
@pytest.mark.parametrize("mutate", [mutate_bytes, mutate_body_bytes, mutate_columns])
def test_no_damage_does_more_than_a_clear_error(
    corpus: list[bytes], mutate: Callable[[random.Random, bytes], bytes]
) -> None:
    end = time.monotonic() + BUDGET_S
    first_seed = random.SystemRandom().randrange(2**32)
    read = cases = 0
    with limited_memory():
        while time.monotonic() < end:
            seed = first_seed + cases
            random_ = random.Random(seed)
            content = mutate(random_, random_.choice(corpus))
            begun = time.thread_time()
            try:
                read += use(content)
            except BaseException as error:
                error.add_note(f"{mutate.__name__} with seed {seed}")
                raise
            cases += 1
            spent = time.thread_time() - begun
            assert spent < CASE_S, f"{mutate.__name__} with seed {seed} took {spent:.1f} s"
    print(f"{mutate.__name__}: {cases} cases, {read} of them read as profiles")
    assert 0 < read < cases
