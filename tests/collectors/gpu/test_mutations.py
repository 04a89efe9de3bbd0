"""Each mend of the GPU collectors is needed: without it, the tests that `mutations.toml` names fail."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from tests.collectors.gpu import mutants
from tests.collectors.gpu.mutants import FOLDER, ROOT, SWITCH, Copy, Mutation

MUTATIONS = mutants.load()
each_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


@each_mutation
def test_the_list_is_about_this_code(mutation: Mutation) -> None:
    """A mend that was moved or changed must be changed in the list, too."""
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.code) == 1
    assert bool(re.search(rf"\b{SWITCH}\b", mutation.without)) == mutation.is_native
    assert mutation.fails
    for test in mutation.fails:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (FOLDER / file).read_text(encoding="utf-8")


def test_native_mends_do_not_overlap() -> None:
    """Because the copy has the switches of all."""
    for file in {mutation.file for mutation in MUTATIONS if mutation.is_native}:
        text = (ROOT / file).read_text(encoding="utf-8")
        codes = [mutation.code for mutation in MUTATIONS if mutation.file == file]
        places = sorted((text.index(code), text.index(code) + len(code)) for code in codes)
        assert all(end <= start for (_, end), (start, _) in pairwise(places))


@pytest.fixture(scope="module")
def copy() -> Copy:
    """The package with all switches, built once and kept for the next run."""
    return Copy(ROOT / "build" / "mutations", MUTATIONS)


@pytest.mark.mutations
def test_nothing_fails_while_every_mend_is_there(copy: Copy) -> None:
    result = copy.run(sorted({test for mutation in MUTATIONS for test in mutation.fails}))
    assert result.count >= len(MUTATIONS)
    assert result.failures == {}


@pytest.mark.mutations
@each_mutation
def test_its_tests_fail_without_the_mend(copy: Copy, mutation: Mutation) -> None:
    result = copy.run(mutation.fails, mutation)
    for test in mutation.fails:
        print(f"{test}: {result.failure_of(test) or 'passes'}")
    assert [test for test in mutation.fails if not result.failure_of(test)] == []
