"""The declarations in native/abi/torch.h, against the headers of the installed torch."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

_NATIVE = Path(__file__).parents[2] / "native"
_DECLARATIONS = _NATIVE / "abi" / "torch.h"
_VTABLE = re.compile(
    r"^Vtable for (\S*ObserverContext)\n\S+ (\d+) entries\n((?:\d+ .*\n)+)", re.MULTILINE
)


def _compile(folder: Path, include: Path) -> subprocess.CompletedProcess[str]:
    """Compile the checks with the declarations in `include`; the class dump lands in `folder`."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        pytest.skip("torch is not installed")
    headers = Path(torch.origin).parent / "include"
    if not (headers / "ATen" / "record_function.h").exists():
        pytest.skip("this torch comes without headers")
    return subprocess.run(
        (
            compiler,
            "-std=c++20",
            "-DNDEBUG",  # as the wheels are built: without it RecordFunction has a field more
            "-fno-access-control",
            "-Wno-invalid-offsetof",
            "-fsyntax-only",
            "-fdump-lang-class",
            f"-isystem{headers}",
            f"-I{include}",
            _NATIVE / "abi" / "check" / "torch_check.cpp",
        ),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_declarations_equal_the_headers(tmp_path: Path) -> None:
    done = _compile(tmp_path, _NATIVE)
    assert done.returncode == 0, done.stderr
    (dump,) = tmp_path.glob("*.class")
    tables = {
        name: (int(entries), re.findall(r"::~(\w+)", body))
        for name, entries, body in _VTABLE.findall(dump.read_text(encoding="utf-8"))
    }
    # Offset to the top, type information, complete and deleting destructor: no other virtual
    # function, in the true class or in the declared one.
    expected = (4, ["ObserverContext", "ObserverContext"])
    assert tables == {
        "at::ObserverContext": expected,
        "deepcontext::abi::ObserverContext": expected,
    }


def test_differences_are_noticed(tmp_path: Path) -> None:
    text = _DECLARATIONS.read_text(encoding="utf-8")
    for declared, wrong in (
        ("kTensorTag = 1", "kTensorTag = 2"),
        ("{200, 88, 96, 304, 208}", "{200, 88, 96, 296, 208}"),
        ("{176, 88, 96, 280, 184}", "{176, 88, 96, 272, 184}"),
        ("bool needs_inputs = false;", ""),
        ("kParamCommsLayout = {40, 80,", "kParamCommsLayout = {40, 88,"),
    ):
        assert text.count(declared) == 1
        text = text.replace(declared, wrong)
    (tmp_path / "abi").mkdir()
    (tmp_path / "abi" / "torch.h").write_text(text, encoding="utf-8")
    done = _compile(tmp_path, tmp_path)
    assert done.returncode != 0
    for message in (
        "kTensorTag is not",
        "not in kKnownLayouts",
        "needs_outputs is not where",
        "another layout than kParamCommsLayout",
    ):
        assert message in done.stderr
