#!/usr/bin/env bash
# Make root folders of other Debian releases, in which tests/wheels tries the wheels: no compiler, no
# checkout, their own glibc.
#
#   tools/make_roots.sh [FOLDER]        (default: build/roots)
#
#   debian11   glibc 2.31, with CPython 3.11 built there from Debian 12's source package
#   debian12   glibc 2.36, with its own CPython 3.11
#   sid        the newest glibc, with its own CPython 3.14
#   arm64      Debian 12 for aarch64, where the kernel runs such programs by qemu (Debian: apt-get install
#              qemu-user-static, which registers itself; in a container: systemd-binfmt, or by hand)
#
# Each has /python, the interpreter to use. Needs root and mmdebstrap (Debian: apt-get install mmdebstrap),
# 1.5 GB and about ten minutes; what exists is kept.
set -euo pipefail
roots=$(realpath -m "${1:-$(dirname "$0")/../build/roots}")

if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null; then
  echo "no roots of other releases: this needs root and mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 0
fi

# A snapshot of a mirror may be older than its lists allow; nothing here is kept or trusted.
make_root() {
  local release=$1 folder=$2 packages=$3 architecture=${4:-$(dpkg --print-architecture)}
  mmdebstrap --quiet --variant=minbase --architectures="$architecture" --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="ca-certificates,$packages" "$release" "$folder"
}

inside() {
  unshare --mount sh -c \
    'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$@"
}

# Debian 11 has CPython 3.9 only. Without Debian's patches, which disable ensurepip.
build_python() {
  local folder=$1
  sed -n 's/^deb \(.*\)bullseye main.*/deb-src \1bookworm main/p' "$folder/etc/apt/sources.list" \
    > "$folder/etc/apt/sources.list.d/source.list"
  cp /etc/resolv.conf /etc/hosts "$folder/etc/"
  inside "$folder" sh -euc '
    cd /tmp
    apt-get -q update
    apt-get -q source --download-only -o APT::Sandbox::User=root python3.11
    dpkg-source --no-check --skip-patches -x python3.11_*.dsc source
    cd source
    ./configure -q --prefix=/opt/python3.11
    make -s -j"$(nproc)"
    make -s install
  ' >"$folder/build.log" 2>&1 || { tail -n 30 "$folder/build.log" >&2; return 1; }
}

debian11() {
  local work=$roots/.build11
  rm -rf "$work" "$roots/.debian11"
  make_root bullseye "$work" \
    build-essential,libssl-dev,libffi-dev,zlib1g-dev,libbz2-dev,liblzma-dev,libsqlite3-dev
  build_python "$work"
  make_root bullseye "$roots/.debian11" \
    libssl1.1,libffi7,zlib1g,libbz2-1.0,liblzma5,libsqlite3-0,libstdc++6
  cp -a "$work/opt/python3.11" "$roots/.debian11/opt/"
  rm -rf "$work"
  ln -s /opt/python3.11/bin/python3.11 "$roots/.debian11/python"
}

debian12() {
  make_root bookworm "$roots/.debian12" python3.11,python3.11-venv
  ln -s /usr/bin/python3.11 "$roots/.debian12/python"
}

sid() {
  make_root sid "$roots/.sid" python3.14,python3.14-venv
  ln -s /usr/bin/python3.14 "$roots/.sid/python"
}

arm64() {
  make_root bookworm "$roots/.arm64" python3.11,python3.11-venv arm64
  ln -s /usr/bin/python3.11 "$roots/.arm64/python"
}

mkdir -p "$roots"
wanted=(debian11 debian12 sid)
[ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || wanted+=(arm64)
for root in "${wanted[@]}"; do
  [ -e "$roots/$root" ] && continue
  echo "making $roots/$root" >&2
  rm -rf "$roots/.$root"
  "$root"
  mv "$roots/.$root" "$roots/$root"
done
