#!/usr/bin/env bash
# Build the profiler with a Python of this machine, run the tests that need a GPU, print a table.
#
#   tests/gpu/run.sh [PYTHON [pytest arguments ...]]
#
# PYTHON (default: python3) needs torch built for the GPU; triton and jax are used where installed. A C++17
# compiler and CMake are needed, and of Python packages nanobind, numpy, protobuf, rich and pytest, which
# are installed beside the build when they are missing. Nothing is installed into PYTHON itself.
set -euo pipefail
python=$(command -v "${1:-python3}") || {
  echo "cannot find the Python '$1'" >&2
  exit 1
}
shift || true
PATH=$(dirname "$python"):$PATH # CMake and ninja may be packages of that Python
cd "$(dirname "$0")/../.."
build=$PWD/build/gpu
package=$build/package
mkdir -p "$build"
export PYTHONPATH=$package:$build/site
missing=()
for module in nanobind numpy protobuf:google.protobuf rich pytest pytest-timeout:pytest_timeout; do
  "$python" -c "import ${module#*:}" 2>/dev/null || missing+=("${module%%:*}")
done
if [ ${#missing[@]} -gt 0 ]; then
  "$python" -m pip install -q --target "$build/site" "${missing[@]}"
fi
generator=()
if command -v ninja >/dev/null; then
  generator=(-G Ninja)
fi
cmake -S . -B "$build/native" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$python" -DSKBUILD_PROJECT_VERSION=0 >"$build/cmake.log"
cmake --build "$build/native" -j "${JOBS:-$(nproc)}" --target _native deepcontext_injection >>"$build/cmake.log"
rm -rf "$package"
mkdir -p "$package"
cp -r src/deepcontext "$package/"
rm -f "$package"/deepcontext/_native*.so
cp "$build"/native/native/{_native*,libdeepcontext_injection}.so "$package/deepcontext/"

"$python" -m deepcontext doctor
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true
amd-smi version 2>/dev/null || true
DEEPCONTEXT_GPU_TABLE=${DEEPCONTEXT_GPU_TABLE:-$build/table.md} \
  "$python" -m pytest -q -m gpu --timeout 600 -p no:cacheprovider tests/gpu "$@"
