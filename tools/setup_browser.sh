#!/usr/bin/env bash
# Install what the browser tests need: Debian's chromium, and playwright for Python (without the
# browsers that playwright would download). A user other than root is told what to ask an
# administrator for; the browser tests are then skipped with the same message.
set -euo pipefail
python=${1:-python3}
"$python" -m pip install -q "playwright>=1.49"
if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
  exit 0
fi
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get install -y -qq chromium >/dev/null || {
    apt-get update -qq && apt-get install -y -qq chromium >/dev/null
  } && exit 0
fi
echo "chromium is not installed and cannot be from here; the browser tests will be skipped" \
     "(Debian: apt-get install chromium)" >&2
