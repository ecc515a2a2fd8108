#!/usr/bin/env bash
# What a release holds beside the binary, made by the program itself: manual
# pages, completions, and the unit with the place where packages put the binary.
# Usage: deploy/release-files.sh DIR VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1 version=$2
rm -rf "$dir"
mkdir -p "$dir/completions"
cmsjobs=$(mktemp); trap 'rm -f "$cmsjobs"' EXIT
CGO_ENABLED=0 go build -tags nodynamic -ldflags "-X main.version=$version" -o "$cmsjobs" ./cmd/cmsjobs
"$cmsjobs" man "$dir/man"
for shell in bash zsh fish; do "$cmsjobs" completion "$shell" >"$dir/completions/cmsjobs.$shell"; done
sed 's|/usr/local/bin/|/usr/bin/|g' deploy/cmsjobs.service >"$dir/cmsjobs.service"
