"""What wraps jax's functions stays silent whatever the program's objects answer. Needs no jax."""

from __future__ import annotations

from deepcontext.collectors import jax_dispatch, jax_transfers


class Refusing:
    """Raises for each attribute, as a property of the program's may."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"'{name}' is not for you")


class Obliging:
    """Has each attribute, as a proxy may."""

    def __getattr__(self, name: str) -> object:
        return self


def plain() -> None:
    """Have code."""


def test_callable_objects_have_no_code() -> None:
    assert jax_dispatch._code_of(plain) is plain.__code__
    assert jax_dispatch._code_of(Refusing()) is None
    assert jax_dispatch._code_of(Obliging()) is None
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
