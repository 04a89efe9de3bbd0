"""A small profile file, and functions that change its content."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pytest

from deepcontext.profiler.format import schema, wire
from deepcontext.profiler.format.status import Status
from deepcontext.profiler.model.profile import Profile
from deepcontext.profiler.model.run_info import RunInfo
from deepcontext.profiler.model.store.messages import message_class
from deepcontext.profiler.model.trust import CollectorReport, TrustReport
from tests.synthetic import random_profile

if TYPE_CHECKING:
    from collections.abc import Callable

_OUTER_NUMBERS = {field.name: field.number for field in schema.MESSAGES["ProfileFile"]}


@pytest.fixture(scope="session")
def small_profile() -> Profile:
    """Twelve nodes; every field of the format has a value."""
    made = random_profile(12, seed=3)
    run = RunInfo(
        command=("python", "train.py", "--lr", "0.1"),
        script="train.py",
        cwd="/home/me",
        python="CPython 3.11.7",
        platform="linux 6.1 x86_64",
        hostname="node-7",
        cpu_model="EPYC",
        cpu_count=8,
        frameworks={"numpy": "2.4.6", "torch": "2.13.0"},
        start_unix_ns=1_795_251_336_786_995_576,
        wall_ns=2_915_542_661,
        cpu_user_ns=2_490_000_000,
        cpu_system_ns=390_000_000,
        peak_rss_bytes=315_031_552,
        pid=12_942,
        exit_reason="exception: ValueError",
        steps=100,
        options={"shapes": "False"},
    )
    trust = TrustReport(
        collectors=(
            CollectorReport("python", Status.RAN, details={"python": "3.11.7"}),
            CollectorReport("torch", Status.DEGRADED, "no layout for torch 9.9"),
        ),
        counters={"dropped": 0, "received": 2**40},
        hook_cost_ns_per_event=108.5,
        notes=("two forked children were not recorded",),
    )
    sections = {"findings": b'{"count": 0}', "source": bytes(range(256))}
    return Profile(made.frames, made.tree, made.metrics, run, trust, sections)


@pytest.fixture(scope="session")
def small_file(small_profile: Profile) -> bytes:
    """Return the content of the file of `small_profile`."""
    return small_profile.to_bytes()


@pytest.fixture(scope="session")
def body_of() -> Callable[[bytes], Any]:
    """Return a function that parses the body of a valid file, so that a test can change it."""

    def parse(content: bytes) -> Any:
        outer: Any = message_class("ProfileFile").FromString(content)
        return message_class("ProfileBody").FromString(outer.body)

    return parse


@pytest.fixture(scope="session")
def file_with() -> Callable[..., bytes]:
    """Return a function that frames a body (a message or bytes), with a correct checksum by default."""

    def frame(body: Any, **outer: Any) -> bytes:
        content = body if isinstance(body, bytes) else body.SerializeToString()
        values = {
            "format": schema.FORMAT,
            "major": schema.MAJOR,
            "minor": schema.MINOR,
            "body_crc32": zlib.crc32(content),
            "body": content,
        }
        assert _OUTER_NUMBERS.keys() == values.keys()
        return wire.encode("ProfileFile", values | outer)

    return frame


@pytest.fixture(scope="session")
def decode_all() -> Callable[[Profile], None]:
    """Return a function that makes a profile decode everything that it decodes lazily."""

    def decode(profile: Profile) -> None:
        for name in profile.metrics:
            profile.inclusive(name)
            profile.query().table(name, by="line")
        profile.to_dict()

    return decode
