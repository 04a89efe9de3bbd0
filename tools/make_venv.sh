#!/usr/bin/env bash
# Make a virtual environment with pip where Python lacks ensurepip: Debian ships it apart, in
# python3-venv. Tries, in this order, the venv module as it is, Debian's package (as root), and
# pip's own copy of virtualenv if there is one.
set -euo pipefail
python=$1
folder=$2
rm -rf "$folder"
if "$python" -m venv "$folder" 2>/dev/null; then
  exit 0
fi
rm -rf "$folder"
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get install -y -qq python3-venv python3-dev >/dev/null || {
    apt-get update -qq && apt-get install -y -qq python3-venv python3-dev >/dev/null
  }
  "$python" -m venv "$folder" && exit 0
fi
if "$python" -m virtualenv -q "$folder" 2>/dev/null; then
  exit 0
fi
echo "cannot make a virtual environment with '$python': its venv module lacks ensurepip;" \
     "install it (Debian: apt-get install python3-venv python3-dev) and try again" >&2
exit 1
