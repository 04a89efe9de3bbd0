"""Random damage to files of other profilers, for FUZZ_S seconds each (100 by default).

Whatever the bytes are, reading gives a profile that views can use, or one sentence: no other exception, no
more than 512 MiB, no more than ten seconds. A failure prints the seed that repeats it, and keeps the file.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import re
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from deepcontext.analyzers import run_analyzers
from deepcontext.errors import ProfileDataError
from deepcontext.profiler.importing.opening import load
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.summaries.account import account
from tests.fuzz.test_profile_reader import BUDGET_S, INTERESTING, limited_memory, mutate_bytes
from tests.profiler.importing import (
    test_nsight,
    test_proton,
    test_rocprof,
    test_stacks,
    test_xplane,
    traces,
)

MEMORY_BYTES = 512 * 2**20
CASE_S = 10.0
FOUND = Path(__file__).parents[2] / "build/fuzz/found"
_SCALAR = re.compile(rb'-?\d+(?:\.\d+)?(?:e-?\d+)?|"[^"\\]*"|true|false|null')
_ODD = (
    *(
        b"null",
        b"true",
        b'""',
        b"[]",
        b"{}",
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"-1",
        b"1.5",
        b'"-7"',
    ),
    *(
        b'"\\ud800"',
        b'"a\x01\x00b"',
        b"[[[[[]]]]]",
        b'{"id": {"handle": []}}',
        b"99999999999999999999",
    ),
    *(str(each).encode() for each in INTERESTING),
    *(str(-each).encode() for each in INTERESTING),
)
_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "StringIds")


def _memory(address: int, size: int) -> dict[str, object]:
    args = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0, "Total Allocated": 64}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": 30, "args": args} | {
        "pid": traces.PID,
        "tid": traces.MAIN,
    }


def corpus(folder: Path) -> dict[str, list[bytes]]:
    """Return small sound files by format, as the tests of each reader write them."""
    path = folder / "sound"
    events = [*traces.training(2), _memory(5, 64), _memory(5, -64)]
    events += [
        {"ph": ph, "cat": "fwdbwd", "id": 1, "pid": 100, "tid": 100, "ts": 30} for ph in "sf"
    ]
    kineto = traces.write(path, events, **traces.NVIDIA).read_bytes()
    weighted = {
        "type": "sampled",
        "name": "t",
        "unit": "none",
        "samples": [[0, 1], [1]],
        "weights": [1, 2],
    }
    opened = test_stacks.evented(("O", 0, 0), ("O", 1, 2), ("C", 1, 5), ("C", 0, 6))
    return {
        "kineto": [kineto, b"[" + b",".join(json.dumps(each).encode() for each in events) + b"]"],
        "nsight": [test_nsight.export(path).read_bytes()],
        "rocprof": [
            test_rocprof.write(path, test_rocprof.tool(7), test_rocprof.tool(8)).read_bytes(),
            test_rocprof.CSV.encode(),
        ],
        "proton": [json.dumps(test_proton.TREE).encode()],
        "xplane": [test_xplane.space()],
        "pprof": [test_stacks.PPROF],
        "speedscope": [test_stacks.speedscope(opened, weighted).encode()],
        "collapsed": [b"main train.py:1;work;a 5\nmain train.py:1;b 7\n" * 5],
    }


def mutate(random_: random.Random, content: bytes, folder: Path) -> bytes:
    """Damage the bytes, or the values, or the container."""
    kind = random_.randrange(8)
    if kind < 2:
        return mutate_bytes(random_, content)
    if content.startswith(b"SQLite"):
        return _mutate_rows(random_, content, folder)
    for _ in range(random_.choice((1, 1, 2, 5))):
        content = _mutate_value(random_, content)
    if kind == 2:
        content = gzip.compress(content, 1)
        content = mutate_bytes(random_, content) if random_.randrange(2) else content
    return content


def _mutate_value(random_: random.Random, content: bytes) -> bytes:
    """Replace a number or a text by another one, by one of another type, or repeat or drop a part."""
    found = list(_SCALAR.finditer(content))
    if not found:
        return mutate_bytes(random_, content)
    first = random_.choice(found)
    match random_.randrange(5):
        case 0:
            other = random_.choice(found)[0]
        case 1:
            last = random_.choice(found)
            part = content[min(first.start(), last.start()) : max(first.end(), last.end())]
            return content[: first.start()] + part + content[first.start() :]
        case _:
            other = random_.choice(_ODD)
    return content[: first.start()] + other + content[first.end() :]


def _mutate_rows(random_: random.Random, content: bytes, folder: Path) -> bytes:
    """Change values, columns and tables of a database."""
    path = folder / "mutated"
    path.write_bytes(content)
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        for _ in range(random_.choice((1, 2, 5))):
            table = random_.choice(_TABLES)
            columns = [row[1] for row in opened.execute(f"PRAGMA table_info({table})")]
            if not columns:
                continue
            column = random_.choice(columns)
            value = random_.choice((None, "text", b"\xff", -1, 1.5, 2**62, -(2**63), 2**24 + 1))
            with contextlib.suppress(sqlite3.Error):  # an id is a whole number, once
                match random_.randrange(6):
                    case 0:
                        opened.execute(f"DROP TABLE {table}")
                    case 1 if len(columns) > 1:
                        opened.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO renamed")
                    case 2:
                        rows = f"SELECT * FROM {table} WHERE rowid > 1 LIMIT 3"
                        opened.execute(f"INSERT INTO {table} {rows}")
                    case _:
                        where = f"rowid % {random_.choice((1, 2))} = 0"
                        opened.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))
    return path.read_bytes()


def use(path: Path) -> bool:
    """Read a file and what views and analyzers ask for; return whether it was a profile."""
    try:
        profile = load(path)
    except ProfileDataError as error:
        text = str(error)
        assert str(path) in text
        assert "\n" not in text
        return False
    found = account(profile)
    assert found.whole_ns == sum(value for _, value in found.causes)
    run_analyzers(profile)
    read = Profile.from_bytes(profile.to_bytes())
    assert all((read.metrics[name].count >= 0).all() for name in profile.metrics)
    assert read.exemplars is not None
    return True


@pytest.mark.fuzz
@pytest.mark.timeout(BUDGET_S + 120)
@pytest.mark.parametrize(
    "name",
    ["kineto", "nsight", "rocprof", "proton", "xplane", "pprof", "speedscope", "collapsed"],
)
def test_no_damage_does_more_than_one_sentence(name: str, tmp_path: Path) -> None:
    sound, path = corpus(tmp_path)[name], tmp_path / "fuzzed"
    end = time.monotonic() + BUDGET_S
    first_seed = random.SystemRandom().randrange(2**32)
    read = cases = 0
    path.write_bytes(sound[0])
    assert use(path)  # imports what reading needs, before memory is limited
    with limited_memory(MEMORY_BYTES):
        while time.monotonic() < end:
            random_ = random.Random(first_seed + cases)
            content = mutate(random_, random_.choice(sound), tmp_path)
            path.write_bytes(content)
            begun = time.thread_time()
            try:
                read += use(path)
                spent = time.thread_time() - begun
                assert spent < CASE_S, f"took {spent:.1f} s"
            except BaseException as error:
                FOUND.mkdir(parents=True, exist_ok=True)
                kept = FOUND / f"{name}-{zlib.crc32(content):08x}"
                kept.write_bytes(content)
                error.add_note(f"{name} with seed {first_seed + cases}: {kept}")
                raise
            cases += 1
    print(f"{name}: {cases} cases, {read} of them read as profiles")
    assert 0 < read < cases
