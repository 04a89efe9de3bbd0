#!/usr/bin/env bash
# Make root folders of other Debian releases, in which tests/wheels tries the wheels: no compiler, no
# checkout, their own glibc.
#
#   tools/make_roots.sh [-r ROOT]... [FOLDER]
#
# Default: every root, in build/roots, or in the folder that DEEPCONTEXT_ROOTS names.
#
#   debian11      glibc 2.31, with CPython 3.11 and 3.13 built there from newer releases' sources
#   debian12      glibc 2.36, with its own CPython 3.11, 3.13 of debian11, and this machine's 3.12
#   sid           the newest glibc, with its own CPython 3.14 and its headers, to build the wheel
#   arm64         Debian 12 for aarch64, with its own CPython 3.11
#   arm64-trixie  Debian 13 for aarch64, with its own CPython 3.13
#   arm64-sid     the newest for aarch64, with its own CPython 3.14
#
# Each has /pythons/python3.N, the interpreters to use. Needs root and mmdebstrap (Debian: apt-get
# install mmdebstrap), 3 GB and twenty minutes; what exists is kept. No Debian release has CPython 3.12.
# Roots of aarch64 need a kernel that runs such programs by qemu (Debian: apt-get install
# qemu-user-static, which registers itself; in a container: systemd-binfmt, or by hand).
set -euo pipefail

wanted=()
while getopts r:h option; do
  case $option in
    r) wanted+=("$OPTARG") ;;
    *) sed -n '2,/^set /{/^#/s/^# \?//p}' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
roots=$(realpath -m "${1:-${DEEPCONTEXT_ROOTS:-$(dirname "$0")/../build/roots}}")

if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
  echo "no roots of other releases: this needs root and mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 0
fi

# A snapshot of a mirror may be older than its lists allow; nothing here is kept or trusted.
make_root() { # RELEASE FOLDER PACKAGES [OPTION]...
  local release=$1 folder=$2 packages=$3
  shift 3
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="ca-certificates,$packages" "$@" "$release" "$folder"
}

inside() {
  unshare --mount sh -c \
    'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$@"
}

# The CPythons of newer releases, in /opt/cpython, with the shared libraries that they need: they run
# wherever glibc is not older. Without Debian's patches, which disable ensurepip.
build_pythons() {
  local folder=$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(sed -n 's/^deb \(.*\) bullseye main.*/\1/p' "$folder/etc/apt/sources.list" | head -n 1)
  cp "$keyring" "$folder/usr/share/keyrings/newer.gpg"
  for release in bookworm trixie; do
    echo "deb-src [signed-by=/usr/share/keyrings/newer.gpg] ${mirror##*] } $release main"
  done > "$folder/etc/apt/sources.list.d/newer.list"
  cp /etc/resolv.conf /etc/hosts "$folder/etc/"
  inside "$folder" sh -euc '
    cd /tmp
    apt-get -q -o Acquire::Check-Valid-Until=false update
    mkdir -p /opt/cpython/lib
    for name in ssl crypto ffi; do
      cp -a /usr/lib/*-linux-gnu/lib$name.so.[0-9]* /opt/cpython/lib/
    done
    for version in 3.11 3.13; do
      apt-get -q source --download-only -o APT::Sandbox::User=root "python$version"
      dpkg-source --no-check --skip-patches -x "python${version}"_*.dsc "source$version"
      cd "source$version"
      ./configure -q --prefix="/opt/cpython/$version" --disable-test-modules --without-static-libpython \
        OPT="-O1 -DNDEBUG" LDFLAGS=-Wl,-rpath,/opt/cpython/lib
      make -s -j"$(nproc)"
      make -s install
      cd ..
    done
  ' >"$folder/build.log" 2>&1 || { tail -n 30 "$folder/build.log" >&2; return 1; }
}

# name_pythons FOLDER PYTHON...: interpreters, as paths inside the folder
name_pythons() {
  local folder=$1 each
  shift
  mkdir -p "$folder/pythons"
  for each in "$@"; do
    ln -sfn "$each" "$folder/pythons/${each##*/}"
  done
}

built() { # VERSION...
  local version
  for version in "$@"; do
    echo "/opt/cpython/$version/bin/python$version"
  done
}

debian11() {
  local work=$roots/.build11
  rm -rf "$work"
  make_root bullseye "$work" \
    build-essential,libssl-dev,libffi-dev,zlib1g-dev,libbz2-dev,liblzma-dev,libsqlite3-dev
  build_pythons "$work"
  make_root bullseye "$roots/.debian11" zlib1g,libbz2-1.0,liblzma5,libsqlite3-0,libstdc++6
  cp -a "$work/opt/cpython" "$roots/.debian11/opt/"
  rm -rf "$work"
  name_pythons "$roots/.debian11" $(built 3.11 3.13)
}

debian12() {
  local folder=$roots/.debian12 python prefix
  make_root bookworm "$folder" python3.11,python3.11-venv,libffi8,libssl3,zlib1g,libbz2-1.0,liblzma5,libsqlite3-0
  cp -a "$roots/debian11/opt/cpython" "$folder/opt/"
  name_pythons "$folder" /usr/bin/python3.11 $(built 3.13)
  if python=$("$(dirname "$0")/find_python.sh" 3.12); then
    prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
    mkdir -p "$folder${prefix%/*}"
    cp -a "$prefix" "$folder${prefix%/*}/"
    # Unless it needs what this root has not: a newer glibc, other libraries.
    ! inside "$folder" "$prefix/bin/python3.12" -c 'import ctypes, ssl, sqlite3, zlib' 2>/dev/null ||
      name_pythons "$folder" "$prefix/bin/python3.12"
  fi
}

sid() {
  make_root sid "$roots/.sid" python3.14,python3.14-venv,libpython3.14-dev
  name_pythons "$roots/.sid" /usr/bin/python3.14
}

# The packages of another processor are unpacked only: their scripts would run by qemu for half an hour.
foreign() { # RELEASE VERSION ROOT
  make_root "$1" "$roots/.$3" "base-files,dash,coreutils,python$2,python$2-venv" --variant=extract \
    --architectures=arm64 --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr
  # What a script of ca-certificates makes; pip of Debian 13 and newer does not start without it.
  cat "$roots/.$3"/usr/share/ca-certificates/mozilla/*.crt > "$roots/.$3/etc/ssl/certs/ca-certificates.crt"
  name_pythons "$roots/.$3" "/usr/bin/python$2"
}

arm64() { foreign bookworm 3.11 arm64; }
arm64-trixie() { foreign trixie 3.13 arm64-trixie; }
arm64-sid() { foreign sid 3.14 arm64-sid; }

mkdir -p "$roots"
if [ ${#wanted[@]} -eq 0 ]; then
  wanted=(debian11 debian12 sid)
  [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || wanted+=(arm64 arm64-trixie arm64-sid)
fi
for root in "${wanted[@]}"; do
  [ -e "$roots/$root" ] && continue
  echo "making $roots/$root" >&2
  rm -rf "$roots/.$root"
  "$root"
  mv "$roots/.$root" "$roots/$root"
done
