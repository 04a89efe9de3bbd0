#!/usr/bin/env bash
# Print an interpreter of CPython VERSION that runs; exit with 1 if there is none.
#
#   tools/find_python.sh VERSION        (as in 3.12)
#
# pyenv puts commands on PATH that run only where that version is chosen, so its folders are tried, too.
set -euo pipefail
for each in "python$1" "$HOME/.pyenv/versions/$1".*/bin/"python$1"; do
  if "$each" -c "" 2>/dev/null; then
    echo "$each"
    exit
  fi
done
exit 1
