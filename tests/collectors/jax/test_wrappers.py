"""Wrappers of jax's functions raise nothing, whatever the program's objects do. Needs no jax."""

from __future__ import annotations

from deepcontext import _native
from deepcontext.collectors.jax import dispatch as jax_dispatch
from deepcontext.collectors.jax import functions as jax_functions
from deepcontext.collectors.jax import transfers as jax_transfers


class Refusing:
    """Raises for every attribute, as a user's property may."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"'{name}' is not for you")


class Obliging:
    """Has every attribute, as a proxy may."""

    def __getattr__(self, name: str) -> object:
        return self


def plain() -> None:
    """Have code."""


def test_callable_objects_have_no_code() -> None:
    assert jax_functions.code_of(plain) is plain.__code__
    assert jax_functions.code_of(Refusing()) is None
    assert jax_functions.code_of(Obliging()) is None
    assert jax_dispatch._id_of("same", Obliging()) == jax_dispatch._id_of("same", Refusing())


def test_buffers_that_do_not_tell_their_size_have_none() -> None:
    for buffers in ([Refusing()], 7, None):
        assert jax_transfers._size_bytes(("aval", "sharding", buffers)) == 0
    assert jax_transfers._size_bytes(("aval", "sharding", [memoryview(b"abc")])) == 3


def test_an_array_without_the_private_field_has_its_value() -> None:
    class Array:
        nbytes = 8
        value = jax_transfers._timed_value(property(lambda _: "value"))

    assert Array().value == "value"


def test_a_call_whose_end_was_not_told_ends_with_its_session() -> None:
    """A session may stop while another thread is inside a call that sys.monitoring reports."""
    function = _native.jax_function("step", "step", "train.py", 1)
    first, second = Refusing(), Refusing()
    for callable_object in (first, second):
        _native.begin(1000)
        _native.jax_begin_call(callable_object, function)
        (found,) = _native.jax_calls()
        assert found[0] is callable_object
        _native.end()
    _native.begin(1000)
    _native.jax_begin_call(first, function)
    _native.jax_end_call(first, False)  # noqa: FBT003  native functions take no names
    assert not _native.jax_calls()
    _native.end()
