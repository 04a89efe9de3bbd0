#!/usr/bin/env bash
# Run the native tests under AddressSanitizer with UndefinedBehaviorSanitizer and under
# ThreadSanitizer, then the extension's Python tests under the former two.
#
#   tools/sanitize.sh PYTHON
#
#   tools/sanitize.sh PYTHON soak
#
# Sessions that start and stop at random under the former two, with what that Python has installed,
# and the C++ tests again and again under the latter; half an hour, or $SOAK_S seconds, each.
#
# The Python tests run in an environment of their own, without any framework: torch's libraries are
# not built for sanitizers. CPython is not either, so ThreadSanitizer sees the C++ tests only.
#
# CXX chooses the compiler. With CXX=clang++-19 (Debian: clang-19 libclang-rt-19-dev) forked children
# do not hang in the sanitizer's own allocator, as they do now and then with GCC's.
set -euo pipefail
python=$(realpath --no-symlinks "$(command -v "$1")") || {
  echo "cannot find the Python '$1'" >&2
  exit 1
}
cd "$(dirname "$0")/.."
build=build/sanitize
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
compiler=${CXX:-g++}
extension=$build/extension-$version-$compiler
package=$build/package-$version
sanitizers=address,undefined
if "$compiler" --version | grep -q clang; then
  runtimes=(libclang_rt.asan-x86_64.so libstdc++.so)
  # libstdc++'s own headers use what it has deprecated.
  flags=(-DCMAKE_CXX_FLAGS=-Wno-deprecated-declarations -DCMAKE_MODULE_LINKER_FLAGS=-shared-libasan)
else
  runtimes=(libasan.so libubsan.so libstdc++.so)
  flags=()
fi
jobs=${JOBS:-2}
generator=()
if command -v ninja >/dev/null; then
  generator=(-G Ninja)
fi

native_tests() { # SANITIZERS CTEST-OPTIONS...
  echo "== C++ tests, -fsanitize=$1"
  local folder=$build/tests-${1/,/-}-$compiler # a comma would end a linker option that names the folder
  cmake -S . -B "$folder" "${generator[@]}" "${flags[@]}" -DDEEPCONTEXT_SANITIZE="$1" \
    -DDEEPCONTEXT_EXTENSION=OFF -DDEEPCONTEXT_TESTS=ON >/dev/null
  cmake --build "$folder" -j "$jobs" >/dev/null
  TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tools/tsan.supp" ctest --test-dir "$folder" --output-on-failure "${@:2}"
}

build_extension() { # PYTHON
  cmake -S . -B "$extension" "${generator[@]}" "${flags[@]}" -DDEEPCONTEXT_SANITIZE=$sanitizers \
    -DPython_EXECUTABLE="$1" -DSKBUILD_PROJECT_VERSION=0 >/dev/null
  cmake --build "$extension" -j "$jobs" --target _native deepcontext_injection >/dev/null
  rm -rf "$package"
  mkdir -p "$package"
  cp -r src/deepcontext "$package/"
  rm -f "$package"/deepcontext/_native*.so
  cp "$extension"/native/{_native*,libdeepcontext_injection}.so "$package/deepcontext/"
  # A checkout installed editable is found before PYTHONPATH; at start-up this takes its finder away.
  cat >"$package/sitecustomize.py" <<'END'
import sys

sys.meta_path = [f for f in sys.meta_path if "editable" not in type(f).__module__]
END
}

# The tests must not run an extension that was built without sanitizers.
check_extension() { # PYTHON
  run_sanitized "$1" -c "
import deepcontext._native, pathlib, sys
sys.exit(not pathlib.Path(deepcontext._native.__file__).is_relative_to('$PWD/$package'))" || {
    echo "'$1' imports another build than the one in $package" >&2
    exit 1
  }
}

run_sanitized() { # COMMAND...
  # libstdc++ comes along because ASan looks for __cxa_throw when it is loaded.
  local libraries=()
  for library in "${runtimes[@]}"; do
    libraries+=("$("$compiler" -print-file-name="$library")")
  done
  LD_PRELOAD="${libraries[*]}" PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
    UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH="$PWD/$package" PYTHONDONTWRITEBYTECODE=1 "$@"
}

extension_tests() {
  local environment=$build/environment
  echo "== Python tests of the extension, -fsanitize=$sanitizers"
  if [ ! -e "$environment/.done" ]; then
    tools/make_venv.sh "$python" "$environment"
    "$environment/bin/python" -m pip install -q "nanobind>=2.4" "pytest>=8.4" "pytest-timeout>=2.3"
    touch "$environment/.done"
  fi
  build_extension "$PWD/$environment/bin/python"
  check_extension "$environment/bin/python"
  run_sanitized "$environment/bin/python" -m pytest -q -p no:cacheprovider \
    --confcutdir tests/native tests/native
}

soak() {
  local seconds=${SOAK_S:-1800}
  echo "== random sessions, -fsanitize=$sanitizers"
  build_extension "$python"
  check_extension "$python"
  SOAK_S=$seconds run_sanitized "$python" -m pytest -q -s -m soak -p no:cacheprovider \
    --timeout $((seconds + 1800)) tests/soak
  local begun=$SECONDS
  while ((SECONDS - begun < seconds)); do
    native_tests thread --repeat until-fail:10
  done
}

if [ "${2:-}" = soak ]; then
  soak
  exit
fi
native_tests address,undefined
native_tests thread
extension_tests
