"""The native declarations of GPU vendors' interfaces, compared with the vendors' headers.

The headers come from PyPI wheels and are never kept. Triton's wheel, which carries AMD's, has some
270 MB: it is checked only when DEEPCONTEXT_CHECK_ROCM is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deepcontext import _native

pytestmark = pytest.mark.compat

ROOT = Path(__file__).resolve().parents[2]
CHECKS = ROOT / "native" / "abi" / "check"
CUPTI = (
    "nvidia-cuda-cupti-cu12==12.1.105",
    "nvidia-cuda-cupti-cu12==12.4.127",
    "nvidia-cuda-cupti-cu12==12.9.79",
    "nvidia-cuda-cupti==13.0.85",
    "nvidia-cuda-cupti==13.1.115",
    "nvidia-cuda-cupti==13.4.92",
    "nvidia-cuda-cupti==13.5.25",
)
NVTX = (
    ("nvidia-nvtx-cu12==12.9.79", "nvidia/nvtx/include/"),
    ("nvidia-nvtx==13.0.85", "nvidia/cu13/include/"),
)
ROCM = "triton==3.9.0"


def headers(requirement: str, folder: Path, part: str) -> Path:
    """Download a wheel and unpack what lies under `part`; return that folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), requirement]
    subprocess.run(command, check=True, timeout=1200)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if part in name]
        archive.extractall(folder, names)
    return folder / names[0].partition(part)[0] / part


def compile_check(source: str, includes: list[Path], *, run: bool = False, out: Path) -> str:
    """Compile one check; return what its program prints, if it is run."""
    command = ["c++", "-std=c++17", "-w", f"-I{ROOT / 'native'}"]
    command += [f"-isystem{folder}" for folder in includes]
    command += (
        [str(CHECKS / source), "-o", str(out)] if run else ["-fsyntax-only", str(CHECKS / source)]
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    if not run:
        return ""
    return subprocess.run([out], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("requirement", CUPTI)
def test_cupti_is_declared_as_its_headers_do(requirement: str, tmp_path: Path) -> None:
    found = headers(requirement, tmp_path, "include/")
    includes = [found, CHECKS / "shim"]
    printed = compile_check("cupti_check.cpp", includes, run=True, out=tmp_path / "check")
    version, kernel, memcpy, memset = printed.split()  # the fake's records have the same sizes
    fake = (ROOT / "tests" / "fakes" / "cupti_records.cpp").read_text(encoding="utf-8")
    assert f"{{{version}, {kernel}, {memcpy}, {memset}}}" in fake


@pytest.mark.parametrize(("requirement", "part"), NVTX)
def test_nvidias_own_copy_of_nvtx_loads_our_library_and_hands_it_ranges(
    requirement: str, part: str, tmp_path: Path
) -> None:
    found = headers(requirement, tmp_path, part)
    compile_check("nvtx_check.cpp", [found], out=tmp_path / "check")
    client = tmp_path / "client.so"
    build = ["c++", "-std=c++17", "-shared", "-fPIC", "-DREAL_NVTX", f"-isystem{found}"]
    source = ROOT / "tests" / "fakes" / "nvtx_client.cpp"
    subprocess.run([*build, str(source), "-o", str(client), "-ldl"], check=True, timeout=300)
    program = f"""
import ctypes
import deepcontext
from deepcontext import _native
deepcontext.start({str(tmp_path / "out.dcprof")!r})
client = ctypes.CDLL({str(client)!r})
assert client.client_open(b"TSL")
assert _native.jax_is_injected()
for is_registered in (0, 1):
    client.client_push(b"XlaModule:#hlo_module=jit_f,program_id=5#", is_registered)
    client.client_push(b"Thunk:#name=a,hlo_op=add.1#", is_registered)
    client.client_pop()
    client.client_pop()
assert _native.jax_device_ranges() == (2, 0)
(node,) = deepcontext.stop().query().kind("hlo").nodes()
"""
    environment = {**os.environ, "NVTX_INJECTION64_PATH": str(_native.__file__)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=120)


@pytest.mark.skipif(
    "DEEPCONTEXT_CHECK_NCCL" not in os.environ,
    reason="no package has the headers: set DEEPCONTEXT_CHECK_NCCL to src/include/plugin of NCCL's sources",
)
def test_nccl_is_declared_as_its_headers_do(tmp_path: Path) -> None:
    (tmp_path / "os.h").touch()  # declares a type that the check declares
    includes = [Path(os.environ["DEEPCONTEXT_CHECK_NCCL"]), tmp_path]
    compile_check("nccl_check.cpp", includes, out=tmp_path / "check")


@pytest.mark.skipif(
    "DEEPCONTEXT_CHECK_ROCM" not in os.environ, reason="270 MB: set DEEPCONTEXT_CHECK_ROCM"
)
def test_rocm_is_declared_as_its_headers_do(tmp_path: Path) -> None:
    found = headers(ROCM, tmp_path, "triton/backends/amd/include/")
    compile_check("rocm_check.cpp", [found], out=tmp_path / "check")
