"""`deepcontext doctor` reports what is available, and why the rest is not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import deepcontext
from deepcontext import collectors
from deepcontext.collectors.torch import peak_measurement
from deepcontext.profiler.format import peaks
from deepcontext.ui.cli import app, doctor


def checks(capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], doctor.Check]:
    assert app.main(["doctor", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["checks"]
    return {(check["group"], check["name"]): doctor.Check(**check) for check in listed}


def test_versions_are_those_installed(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys)
    assert found["versions", "python"].detail.startswith(platform.python_version())
    assert found["versions", "deepcontext"].detail == deepcontext.__version__
    assert found["versions", "numpy"].detail == importlib.metadata.version("numpy")
    for name in doctor.PACKAGES:
        assert ("versions", name) in found


def test_native_core_is_named_with_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    core = checks(capsys)["core", "native core"]
    assert core.is_available
    assert Path(core.detail.partition(", ")[2]).is_file()


def test_every_collector_is_listed_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys)
    names = [make().name for make in collectors.ALL]
    assert names == [name for group, name in found if group == "collectors"]
    for name in names:
        check = found["collectors", name]
        assert check.is_available is not None
        assert check.detail


def test_machine_and_gpu_libraries_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys)
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    if paranoid.exists():
        level = paranoid.read_text(encoding="ascii").strip()
        assert found["machine", "perf_event_paranoid"].detail.startswith(f"{level} (")
    assert ("machine", "clock") in found
    for name, files in doctor.GPU_LIBRARIES:
        check = found["gpu libraries", name]
        assert check.is_available or all(file in check.detail for file in files)


def test_library_that_exists_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = (("C library", ("libno-such.so", "libc.so.6")), ("none", ("libno-such.so",)))
    monkeypatch.setattr(doctor, "GPU_LIBRARIES", libraries)
    found, missing = doctor.check_gpu()
    assert (found.is_available, found.detail) == (True, "libc.so.6")
    assert (missing.is_available, missing.detail) == (False, "no libno-such.so on the library path")


def test_text_holds_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    found = checks(capsys)
    assert app.main(["doctor"]) == 0
    text = capsys.readouterr().out
    for group, name in found:
        assert group in text
        assert name in text
    lines = text.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines.count("") == len({group for group, _ in found}) - 1


@pytest.mark.parametrize(
    ("flags", "is_available"),
    [
        ("fpu constant_tsc nonstop_tsc", True),
        ("fpu constant_tsc", False),
        ("", False),
    ],
)
def test_clock_that_may_drift_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, *, is_available: bool
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(f"model name : x\nflags : {flags}\n", encoding="utf-8")
    monkeypatch.setattr(doctor, "_CPU_FILE", file)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    *_, clock = doctor.check_machine()
    assert clock.is_available is is_available


def test_core_that_cannot_be_loaded_exits_with_4(tmp_path: Path) -> None:
    # A real failure: the extension of a copy of the package is no shared library.
    import shutil

    package = tmp_path / "deepcontext"
    source = Path(deepcontext.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    suffix = next(iter(__import__("importlib.machinery").machinery.EXTENSION_SUFFIXES))
    (package / f"_native{suffix}").write_bytes(b"not a library")
    code = "import sys; sys.path.insert(0, sys.argv.pop()); sys.argv[0] = 'deepcontext';"
    code += (
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(type(f)).lower()];"
    )
    code += "from deepcontext.ui.cli.app import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "native core" in done.stdout


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_peaks_are_measured_and_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # The same program with shorter runs: what each takes is not looked at.
    text = peak_measurement._PROGRAM.read_text(encoding="utf-8")
    hurried = text.replace("_LEAST_TOTAL_S = 0.7\n", "_LEAST_TOTAL_S = 0.05\n")
    assert hurried != text
    (tmp_path / "peak_program.py").write_text(hurried, encoding="utf-8")
    monkeypatch.setattr(peak_measurement, "_PROGRAM", tmp_path / "peak_program.py")
    assert "deepcontext doctor --measure" in checks(capsys)["peaks", "processors"].detail
    assert app.main(["doctor", "--measure", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["checks"]
    found = peaks.measured()
    names = [check["name"] for check in shown if check["group"] == "peaks"]
    assert len(names) == len(found)
    assert "1 thread" in names
    model, cores = peaks.this_cpu()
    for each in found:
        assert each.is_of(model, cores)
        assert set(each.flops_per_second) >= {"f32", "f64", "bf16"}
        assert set(each.spread) == {*each.flops_per_second, "copy"}
        assert min(each.spread.values()) >= 0
        # Any processor of the last twenty years is faster, and none yet is as fast.
        assert 1e8 < each.flops_per_second["f32"] < 1e16
        assert 1e7 < each.bytes_per_second < 1e14
    one, most = min(found, key=lambda e: e.threads), max(found, key=lambda e: e.threads)
    assert most.flops_per_second["f32"] >= one.flops_per_second["f32"]


def test_without_torch_measuring_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert app.main(["doctor", "--measure"]) == 4
    assert "no torch here; install torch" in capsys.readouterr().err
    assert not (tmp_path / "deepcontext").exists()
