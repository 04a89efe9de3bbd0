"""Values of options: which are refused, with which message, and before anything starts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pytest

import deepcontext
from deepcontext import _native, collectors, errors
from deepcontext.profiler.format.counter_names import COUNTER_NAMES
from deepcontext.profiler.recording.options import OPTIONS, Option, OptionValues, SessionOptions
from deepcontext.ui.cli import profile as command
from deepcontext.ui.cli.session_options import word_of

if TYPE_CHECKING:
    from collections.abc import Callable

FLAGS = ("shapes", "jax_exact", "stalls", "native", "gpu_calls", "memory", "force")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("snapshot_interval", -1, "a number from 0 to 1,000,000 (seconds; 0 to write only at the"),
        ("snapshot_interval", math.inf, "found inf"),
        ("snapshot_interval", 10**400, "found 1000"),
        ("node_limit", 0, "a whole number from 1 to 4,194,304 (nodes a thread), found 0"),
        ("node_limit", -5, "found -5"),
        ("node_limit", 2.5, "found 2.5"),
        ("node_limit", 2**32, "found 4294967296"),
        ("node_limit", True, "found True"),
        ("cpu_rate", 1001, "a number from 0 to 1,000 (samples a second; 0 for none), found 1001"),
        ("cpu_rate", math.nan, "found nan"),
        ("cpu_rate", "100", "found '100'"),
        ("cpu_rate", None, "found None"),
        ("counters", "cycle", "no counter 'cycle'; known are cycles, "),
        ("counters", "cycles,,page-faults", "no counter ''"),
        ("counters", ["cycles", 3], "no counter 3"),
        ("counters", 3, "expected names of counters, found 3"),
        ("counters", b"cycles", "found b'cycles'"),
        *((flag, "no", "expected True or False, found 'no'") for flag in FLAGS),
        ("shapes", None, "found None"),
        ("shapes", 2, "found 2"),
    ],
)
def test_a_value_out_of_range_is_refused_before_anything_starts(
    option: str, value: Any, expected: str
) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(errors.UserError) as caught:
        deepcontext.start(**options)
    assert str(caught.value).startswith(f"option {option}: ")
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 250
    assert not _native.is_recording()


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("cycles", ("cycles",)),
        ("cycles, page-faults,cycles", ("cycles", "page-faults")),
        ("", ()),
        ((), ()),
        (["page-faults"], ("page-faults",)),
        (iter(COUNTER_NAMES), COUNTER_NAMES),
    ],
)
def test_counters_may_be_one_string_with_commas(value: Any, names: tuple[str, ...]) -> None:
    assert SessionOptions.of({"counters": value}).counters == tuple(names)


@pytest.mark.parametrize("value", [np.float64(50), np.int64(50), 50, 50.0])
def test_numbers_of_any_numeric_type_are_accepted(value: Any) -> None:
    options = SessionOptions.of({"cpu_rate": value, "node_limit": value})
    assert (options.cpu_rate, options.node_limit) == (50.0, 50)
    assert (type(options.cpu_rate), type(options.node_limit)) == (float, int)


def test_an_unknown_option_is_refused_before_anything_starts() -> None:
    unknown: dict[str, Any] = {"shape": True}
    for call in (deepcontext.start, deepcontext.profile):
        with pytest.raises(TypeError, match="no option 'shape'; options are shapes, "):
            call(**unknown)
    assert not _native.is_recording()


def test_a_decorator_refuses_a_value_when_it_is_applied() -> None:
    with pytest.raises(errors.UserError, match="option cpu_rate: expected a number"):
        deepcontext.profile(cpu_rate=-1)


def test_both_ends_of_every_range_are_accepted() -> None:
    for node_limit, cpu_rate in ((1, 0), (4_194_304, 1000)):
        with deepcontext.profile(node_limit=node_limit, cpu_rate=cpu_rate):
            pass


# -- the declaration, and what is generated from it


def test_type_checkers_see_the_options_that_are_declared() -> None:
    accepted = {each.name: each.type for each in fields(SessionOptions)}
    accepted["counters"] = str | Sequence[str]  # the spellings that a program may use
    assert list(get_type_hints(OptionValues).items()) == list(accepted.items())


@pytest.mark.parametrize("function", [deepcontext.start, deepcontext.profile])
def test_python_shows_names_defaults_and_meanings(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    shown = {
        name: each.default
        for name, each in parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert shown == {"force": False, **asdict(SessionOptions())}
    text = deepcontext.start.__doc__
    assert text is not None
    for option in OPTIONS:
        assert f"{option.name}: {option.meaning}." in text


def test_every_option_belongs_to_collectors_that_exist() -> None:
    names = {make().name for make in collectors.ALL}
    for option in OPTIONS:
        assert set(option.collectors) <= names, option.name


@pytest.mark.parametrize(
    ("word", "value"),
    [("0", 0), ("-1", -1), ("1001", 1001), ("2.5", 2.5), ("1e9", 1e9), ("nan", math.nan)]
    + [(text, text) for text in ("soon", "cycles", "cycles,page-fault")],
)
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_command_line_accepts_and_refuses_what_python_does(
    option: Option, word: str, value: Any
) -> None:
    if isinstance(option.default, bool):
        return  # takes no value there
    given = word if option.name == "counters" else value
    assert _said(lambda: SessionOptions.of({option.name: given})) == _said(
        lambda: command.make_parser().parse([f"{word_of(option)}={word}"])
    )


def _said(call: Callable[[], object]) -> str:
    """Return the error without the caller's spelling of the option."""
    try:
        call()
    except errors.UserError as error:
        return str(error).partition(": ")[2].partition("; see '")[0]
    return ""
