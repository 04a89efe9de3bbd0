"""The sampler survives frames that are half made: the interpreter changes them at any moment."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# Offset in bytes of `_PyInterpreterFrame`'s fields, see native/python/interpreter_frame.h.
_PREVIOUS = 48 if sys.version_info < (3, 12) else 8
_CODE = 32 if sys.version_info < (3, 12) else 0
ADDRESSES = (
    0x18,  # null's neighbour
    0x7FFF_0000_0003,  # misaligned
    0x7000_DEAD_0000,  # mapped by nobody
    0x8000_0000_0000_0000,  # not canonical
    0xFFFF_FFFF_8100_0000,  # the kernel's
    0xFFFF_FFFF_FFFF_FFF8,  # runs past the end of the address space
)
# While the frame is hostile only C runs: the interpreter itself looks into it at many instructions.
PROGRAM = """
import ctypes, gc, hashlib, operator, sys, time
from collections import deque
from deepcontext import _native
from functools import partial

work = {call}

def samples():
    counts = _native.sampler_counts()
    return counts["{state}"], counts["lost"] + counts["cut"]

# Frames in a ring. The second owner makes it one of the interpreter's own on 3.12 and newer.
ring = (ctypes.c_uint64 * 16)()
ctypes.memset(ring, {owner}, ctypes.sizeof(ring))
ring[{previous} // 8] = ctypes.addressof(ring)

# Code objects whose name or line table claims to be a terabyte long.
def forge(object, replaced=None, by=0):
    copy = (ctypes.c_uint64 * (sys.getsizeof(object) // 8 + 1))()
    ctypes.memmove(copy, id(object), sys.getsizeof(object))
    for place, word in enumerate(copy):
        copy[place] = by if word == replaced else word
    return copy

def forge_code(part):
    long = forge(part)
    long[2] = 1 << 40
    forged.append(long)
    forged.append(forge(samples.__code__, id(part), ctypes.addressof(long)))
    return ctypes.addressof(forged[-1])

forged = []
code_with_long_name = forge_code(samples.__code__.co_qualname)
code_with_long_table = forge_code(samples.__code__.co_linetable)

def expose(address):
    activation = ctypes.c_void_p.from_address(id(sys._getframe()) + 24).value
    field = ctypes.c_uint64.from_address(activation + {offset})
    hurt = partial(setattr, field, "value", address)
    heal = partial(setattr, field, "value", field.value)
    deque(map(operator.call, (hurt, work, heal)), 0)

gc.disable()
_native.begin(1000)
assert _native.watch_code() == ""
assert _native.start_sampler(1000) == ""
for address in ({addresses}):
    before = samples()
    end = time.monotonic() + 60
    while min(now - then for now, then in zip(samples(), before)) < 3 and time.monotonic() < end:
        expose(address)
    seen, missed = (now - then for now, then in zip(samples(), before))
    assert min(seen, missed) >= 3, f"the frame with {{address:#x}} was not looked at"
    print(hex(address), "survived", flush=True)
_native.stop_sampler()
_native.end()
_native.unwatch_code()
"""
CALLS = {
    "running": 'partial(hashlib.pbkdf2_hmac, "sha256", b"x", b"y", 100_000)',
    "waiting": "partial(time.sleep, 0.05)",
}


def program(offset: int, state: str, addresses: str, owner: int = 0) -> str:
    return PROGRAM.format(
        offset=offset,
        addresses=addresses,
        state=state,
        call=CALLS[state],
        previous=_PREVIOUS,
        owner=owner,
    )


@pytest.mark.parametrize("offset", [_PREVIOUS, _CODE], ids=["previous", "code"])
@pytest.mark.parametrize("state", CALLS)
def test_a_frame_that_points_anywhere_costs_the_sample_and_not_the_program(
    offset: int, state: str, in_subprocess: Callable[[str], str]
) -> None:
    in_subprocess(program(offset, state, ", ".join(map(hex, ADDRESSES))))


@pytest.mark.long
@pytest.mark.parametrize("state", CALLS)
def test_what_only_looks_like_a_code_object_is_none(
    state: str, in_subprocess: Callable[[str], str]
) -> None:
    in_subprocess(program(_CODE, state, "code_with_long_name, code_with_long_table"))


@pytest.mark.parametrize("owner", [0, 3], ids=["program's", "interpreter's"])
@pytest.mark.parametrize("state", CALLS)
def test_a_walk_through_frames_in_a_ring_ends(
    state: str, owner: int, in_subprocess: Callable[[str], str]
) -> None:
    in_subprocess(program(_PREVIOUS, state, "ctypes.addressof(ring),", owner))


# What some containers do. Rules of the classic packet filter: load the number of the system call,
# skip one rule if it is another, answer with EPERM, allow.
REFUSAL = """
import ctypes, errno, platform

class Rule(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8),
                ("value", ctypes.c_uint32)]

class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint16), ("rules", ctypes.POINTER(Rule))]

PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}[platform.machine()]
rules = (Rule * 4)(Rule(0x20, 0, 0, 0), Rule(0x15, 0, 1, PROCESS_VM_READV),
                   Rule(0x06, 0, 0, 0x50000 | errno.EPERM), Rule(0x06, 0, 0, 0x7FFF0000))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, ctypes.byref(Filter(4, rules))) == 0  # PR_SET_SECCOMP
assert libc.process_vm_readv(0, None, 0, None, 0, 0) == -1
assert ctypes.get_errno() == errno.EPERM
"""


@pytest.mark.parametrize("state", CALLS)
def test_it_is_so_where_the_kernel_refuses_to_copy_memory(
    state: str, in_subprocess: Callable[[str], str]
) -> None:
    in_subprocess(REFUSAL + program(_PREVIOUS, state, ", ".join(map(hex, ADDRESSES))))


def test_samples_are_whole_where_the_kernel_refuses_to_copy_memory(
    in_subprocess: Callable[[str], str],
) -> None:
    busy = """
import time
from deepcontext import _native

_native.begin(1000)
assert _native.watch_code() == ""
assert _native.start_sampler(1000) == ""
end = time.monotonic() + 30
while time.monotonic() < end:
    counts = _native.sampler_counts()
    if counts["running"] >= 20 and counts["waiting"] >= 20:
        break
    sum(range(100_000))
    time.sleep(0.01)
_native.stop_sampler()
_native.end()
_native.unwatch_code()
assert counts["running"] >= 20 and counts["waiting"] >= 20, counts
# 3.11 and 3.12 publish a frame before it is complete.
assert counts["lost"] + counts["cut"] <= 5, counts
"""
    in_subprocess(REFUSAL + busy)
