#!/usr/bin/env bash
# Check the page's sources, run its unit tests, and rebuild it: the bundle in the repository must be
# exactly what the sources give. With --write the bundle is replaced instead of compared.
set -euo pipefail
cd "$(dirname "$0")/../web"
static=../src/deepcontext/ui/web/static
# Vite needs this version or a later one.
if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then
  echo "node 20.19 or later is not installed: the page's sources are not checked" >&2
  exit "${DEEPCONTEXT_REQUIRE_NODE:-0}"
fi
npm ci --no-audit --no-fund --silent
npm run --silent check
npm run --silent test -- --reporter=dot
build() { # the page's script, and those of views that few pages show
  npm run --silent build -- --logLevel error "$@"
  npm run --silent build:jobs -- --logLevel error "$@"
  npm run --silent build:roofline -- --logLevel error "$@"
  npm run --silent build:timeline -- --logLevel error "$@"
  npm run --silent build:engine -- --logLevel error "$@"
}
if [ "${1:-}" = --write ]; then
  build
  exit 0
fi
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
build --outDir "$built"
diff -rq "$built" "$static" || {
  echo "the bundle in src/deepcontext/ui/web/static is not what web/ builds to;" \
       "run tools/check_web.sh --write and commit it" >&2
  exit 1
}
