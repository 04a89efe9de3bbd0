"""Packed sections come back as they were; damage is an error that names the section."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from deepcontext.errors import ProfileDataError
from deepcontext.profiler.model.job import sections
from deepcontext.profiler.model.job.artifact import profile_of, read_part
from deepcontext.profiler.model.job.packing import pack, unpack
from deepcontext.profiler.model.job.part import part_of
from tests.profiler.model.job.conftest import Made

COLUMNS: dict[str, Any] = {
    "codes": np.arange(6, dtype=np.uint16).reshape(2, 3),
    "least": np.array([-(2**62), 0, 5], np.int64),
    "none": np.zeros((0, 4), np.uint16),
}


def test_facts_and_columns_come_back() -> None:
    packed = unpack(pack({"ranks": 3}, COLUMNS), "columns")
    assert packed.facts == {"ranks": 3}
    for name, column in COLUMNS.items():
        assert packed.columns[name].dtype == column.dtype
        np.testing.assert_array_equal(packed.columns[name], column)


@pytest.mark.parametrize("seed", range(40))
def test_any_bytes_are_read_or_refused(seed: int) -> None:
    choose = random.Random(seed)
    payload = bytearray(pack({"ranks": 3}, COLUMNS))
    for _ in range(choose.randint(1, 4)):
        payload[choose.randrange(len(payload))] = choose.randrange(256)
    cut = bytes(payload[: choose.randrange(len(payload))])
    for damaged in (bytes(payload), cut, b""):
        try:
            unpack(damaged, "columns")
        except ProfileDataError as error:
            assert str(error).startswith("cannot read section 'columns': ")  # noqa: PT017


def test_facts_and_columns_of_a_wrong_type_are_refused() -> None:
    job = profile_of(part_of(Made(0, ((0, 0, 0),), ({0: 5}, {}, {})).profile(), 0))
    rows = pack({"rows": [{"rank": 0, "wall_ns": "10"}]}, {})
    with pytest.raises(ProfileDataError, match=r"section 'ranks': 'rows': 'wall_ns' is '10'"):
        sections.rows_of(job.with_section("ranks", rows))
    packed = unpack(job.sections["columns"], "columns")
    for name in ("rank", "node", "is_whole", "0"):
        columns = {**packed.columns, name: np.zeros((2, 2), np.uint16)}
        payload = pack(packed.facts, columns)
        with pytest.raises(ProfileDataError, match="section 'columns'"):
            sections.columns_of(job.with_section("columns", payload))


@pytest.mark.parametrize("section", sections.ALL)
def test_a_job_with_a_foreign_section_is_refused(section: str) -> None:
    made = Made(0, ((0, 0, 0), (0, 1, 0)), ({1: 5}, {}, {}))
    job = profile_of(part_of(made.profile(), 0))
    larger = Made(0, ((0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 0)), ({3: 5}, {}, {}))
    foreign = profile_of(part_of(larger.profile(), 0)).sections[section]
    payloads = [b"", pack({}, {})] if section == sections.RANKS else [b"", pack({}, {}), foreign]
    for payload in payloads:
        with pytest.raises(ProfileDataError, match=f"section '{section}'"):
            read_part(job.with_section(section, payload))
