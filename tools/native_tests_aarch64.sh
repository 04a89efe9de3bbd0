#!/usr/bin/env bash
# Build the native tests for aarch64 and run them by qemu, on a machine with another processor.
#
#   tools/native_tests_aarch64.sh [-s] [TEST...]
#
#   -s     sign return addresses (pointer authentication)
#   TEST   as in stack_walk (default: all)
#
# CXX chooses the compiler (default: Debian's cross compiler). Needs, on Debian: apt-get install
# g++-12-aarch64-linux-gnu qemu-user-static. qemu orders memory as strongly as the machine that it runs
# on, and has pages of 4 KiB: neither is tried. It refuses seccomp, so that memory_reader cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=${CXX:-aarch64-linux-gnu-g++-12}
emulator="qemu-aarch64-static;-L;/usr/aarch64-linux-gnu"
build=build/native-test-aarch64
flags=()
while getopts sh option; do
  case $option in
    s)
      build+=-signed
      emulator+=";-cpu;max"
      flags=(-DCMAKE_CXX_FLAGS=-mbranch-protection=standard)
      ;;
    *) sed -n '2,/^set /{/^#/s/^# \?//p}' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
for needed in "$compiler" qemu-aarch64-static; do
  command -v "$needed" >/dev/null || { echo "no $needed on PATH; this script's beginning says what installs it" >&2; exit 1; }
done

cmake -S . -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator" -DDEEPCONTEXT_EXTENSION=OFF -DDEEPCONTEXT_TESTS=ON "${flags[@]}" >/dev/null
targets=()
for name in "$@"; do
  targets+=(--target "test_$name")
done
cmake --build "$build" -j "${JOBS:-2}" "${targets[@]}" >/dev/null
pattern=$(IFS='|'; echo "$*")
ctest --test-dir "$build" --output-on-failure -E '^memory_reader$' ${pattern:+-R "^($pattern)\$"}
