"""What is shown of a native function whose name says nothing: the library that it is of."""

from __future__ import annotations

import pytest

from deepcontext.profiler.format.frame import Frame, FrameKind
from deepcontext.profiler.summaries.native_callees import name_of

PACKAGES = "/env/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("name", "file", "shown"),
    [
        ("numpy.concatenate", f"{PACKAGES}/numpy/_core/_multiarray.so", "numpy.concatenate"),
        ("operator+=", "/usr/lib/libfoo.so", "operator+="),
        (
            "writers.cpython-311-x86_64-linux-gnu.so+0xb760",
            f"{PACKAGES}/pandas/_libs/writers.cpython-311.so",
            "code of pandas._libs.writers",
        ),
        ("libz.so.1+0x4970", "/usr/lib/libz.so.1", "code of libz"),
        ("libz.so.1+0x4970", "", "code of libz"),
        (
            "_RINvNtNtCsgyqm6duC8nX_4pyo35impl_",
            f"{PACKAGES}/rust/rust.abi3.so",
            "code of rust.rust",
        ),
        ("_RINvNtNtCsgyqm6duC8nX_4pyo35impl_", "", "_RINvNtNtCsgyqm6duC8nX_4pyo35impl_"),
    ],
)
def test_a_function_without_a_name_is_code_of_its_library(name: str, file: str, shown: str) -> None:
    assert name_of(Frame(FrameKind.NATIVE, name, file, 0)) == shown
