"""Calls that a type checker must accept, and calls that it must refuse. Checked by mypy, not run.

A refused call carries the error it is refused with: mypy reports such a comment where it has no use.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import deepcontext


def accepted() -> None:
    deepcontext.start()
    session = deepcontext.start("out.dcprof", shapes=True, cpu_rate=50, node_limit=1000, force=True)
    assert_type(session, deepcontext.Session)
    deepcontext.start(path=Path("out.dcprof"), counters="cycles")
    deepcontext.start(counters=["cycles", "instructions"])
    with deepcontext.profile("out.dcprof", snapshot_interval=0.5) as inner:
        assert_type(inner, deepcontext.Session)


@deepcontext.profile
def bare(name: str) -> int:
    return len(name)


@deepcontext.profile(native=True)
def with_options(name: str) -> int:
    return len(name)


def refused() -> None:
    deepcontext.start(shape=True)  # type: ignore[call-arg]
    deepcontext.start(cpu_rate="fast")  # type: ignore[arg-type]
    deepcontext.profile(node_limit=2.5)  # type: ignore[call-overload]
    deepcontext.profile(shape=True)  # type: ignore[call-overload]


assert_type(bare("x") + with_options("x"), int)
