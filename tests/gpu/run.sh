#!/usr/bin/env bash
# Build the profiler with a Python of this machine, and run the tests that need a GPU.
#
#   tests/gpu/run.sh [PYTHON [visit|torch|jax|overhead|stalls|unprivileged|amd|fakes|all [pytest arguments ...]]]
#
# One visit to a machine is `all`: in half an hour `visit` (correctness of PyTorch, JAX and Triton, ten tests at a time,
# then the tests that compare times), `stalls` (twenty programs), `overhead`, and `unprivileged` (without
# root's capabilities), each with a limit (visit.py). Where there are fewer cores, `torch` and `jax` run the tests of `visit`
# one after the other. Each part writes table-PART.md line by line and summary-PART.json (figures, versions, driver, what
# was not reached) to the folder $OUT, else to build/gpu; `all` to a folder below benchmarks/visits, with one page that
# says what may change. `fakes` shows the way without a GPU, and so does `all` where there is none.
#
# PYTHON (default: python3) needs torch built for the GPU; triton and jax are used where installed. A C++17
# compiler and CMake are needed, and of Python packages nanobind, numpy, protobuf, rich and pytest, which
# are installed beside the build when they are missing. Nothing is installed into PYTHON itself.
set -euo pipefail
SECONDS=0
python=$(command -v "${1:-python3}") || {
  echo "cannot find the Python '$1'" >&2
  exit 1
}
shift || true
part=${1:-all}
shift || true
case $part in
visit)
  tests=(test_nvidia_attribution.py test_nvidia_turns.py test_nvidia_lifecycle.py test_nvidia_jax.py)
  alone=(test_nvidia_accuracy.py test_nvidia_kernels.py)
  ;;
torch)
  tests=(test_nvidia_attribution.py test_nvidia_kernels.py test_nvidia_turns.py test_nvidia_accuracy.py)
  tests+=(test_nvidia_lifecycle.py)
  ;;
jax) tests=(test_nvidia_jax.py) ;;
overhead) tests=(test_nvidia_training.py test_nvidia_overhead.py) ;;
amd) tests=(test_amd.py) ;;
fakes) tests=(test_set_up.py) ;;
stalls) tests=(test_nvidia_stalls.py) ;;
unprivileged) tests=(test_nvidia_attribution.py) ;;
all) tests=() ;;
*)
  echo "no part '$part': visit, torch, jax, overhead, stalls, unprivileged, amd, fakes or all" >&2
  exit 1
  ;;
esac
PATH=$(dirname "$python"):$PATH # CMake and ninja may be packages of that Python
cd "$(dirname "$0")/../.."
build=$PWD/build/gpu
package=$build/package
mkdir -p "$build"
# What was built for another Python does not serve this one.
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
native=$build/native-$version
site=$build/site-$version
export PYTHONPATH=$package:$site
missing=()
for module in nanobind numpy protobuf:google.protobuf rich pytest; do
  "$python" -c "import ${module#*:}" 2>/dev/null || missing+=("${module%%:*}")
done
if [ ${#missing[@]} -gt 0 ]; then
  "$python" -m pip install -q --target "$site" "${missing[@]}"
fi
generator=()
if command -v ninja >/dev/null; then
  generator=(-G Ninja)
fi
cmake -S . -B "$native" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$python" -DSKBUILD_PROJECT_VERSION=0 >"$build/cmake.log"
cmake --build "$native" -j "${JOBS:-$(nproc)}" --target _native deepcontext_injection >>"$build/cmake.log"
rm -rf "$package"
mkdir -p "$package"
cp -r src/deepcontext "$package/"
rm -f "$package"/deepcontext/_native*.so
cp "$native"/native/{_native*,libdeepcontext_injection}.so "$package/deepcontext/"
if [ "$part" = fakes ] || [ ! -e /proc/driver/nvidia/version -a "$part" = all ]; then
  cmake -S tests/fakes -B "$build/fakes" "${generator[@]}" >>"$build/cmake.log"
  cmake --build "$build/fakes" -j "${JOBS:-$(nproc)}" >>"$build/cmake.log"
  export DEEPCONTEXT_FAKES=$build/fakes
  export DEEPCONTEXT_LIBCUPTI=$build/fakes/libcupti.so.13 DEEPCONTEXT_LIBCUDA=$build/fakes/libcuda.so.1
fi

if [ "$part" = all ]; then
  exec "$python" tests/gpu/visit.py "$python" "$@"
fi
"$python" -m deepcontext doctor || true # an answer of the machine, not of a test
export DEEPCONTEXT_GPU_SET_UP_S=$SECONDS DEEPCONTEXT_GPU_PART=$part
if [ "$part" = visit ]; then
  has_failed=0
  "$python" tests/gpu/side_by_side.py visit 10 150 "${tests[@]}" || has_failed=1
  "$python" tests/gpu/side_by_side.py times 1 150 "${alone[@]}" || has_failed=1
  exit $has_failed
fi
as_user=()
if [ "$part" = unprivileged ] && [ "$(id -u)" = 0 ]; then
  as_user=(setpriv --inh-caps=-all --bounding-set=-all) # root's files remain readable
fi
"${as_user[@]}" "$python" -m pytest -q -p no:cacheprovider -c tests/gpu/pytest.ini --rootdir tests/gpu --confcutdir tests/gpu \
  "${tests[@]/#/tests/gpu/}" "$@"
