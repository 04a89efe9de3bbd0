#!/usr/bin/env bash
# Check that a tag, the version of the package and the changelog agree: tools/check_release.sh v0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:?name the tag, as in v0.1.0}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
[ "$tag" = "v$version" ] || { echo "the tag is $tag, the version in pyproject.toml $version" >&2; exit 1; }
heading=$(grep -m1 '^## ' CHANGELOG.md)
[[ $heading =~ ^"## $version, "[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
  { echo "CHANGELOG.md begins with '$heading', expected '## $version, YYYY-MM-DD'" >&2; exit 1; }
