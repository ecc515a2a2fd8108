#!/usr/bin/env bash
# Makes docs/images/*.png: starts the demo with an account, and photographs its
# pages by a headless Chromium. Needs Go, curl and chromium; with ImageMagick
# the pictures are a third as large.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d); port=$((20000 + RANDOM % 20000)); address="http://127.0.0.1:$port"
go build -tags nodynamic -o "$dir/cmsjobs" ./cmd/cmsjobs
"$dir/cmsjobs" --set "http.listen=127.0.0.1:$port" --set http.admin_password=screenshot demo --dir "$dir/site" >"$dir/log" 2>&1 &
demo=$!
trap 'kill $demo 2>/dev/null || true; wait $demo 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 300); do curl -fsS -o "$dir/ready" "$address/readyz" 2>"$dir/curl" && break; kill -0 $demo || { cat "$dir/log"; exit 1; }; sleep 0.2; done
sleep 5 # for some jobs to be done
mkdir -p docs/images
CMSJOBS_DEMO=$address CMSJOBS_DEMO_PASSWORD=screenshot CMSJOBS_SCREENSHOTS=$PWD/docs/images go test ./internal/web -run TestPicturesOfADemo -count=1
if command -v mogrify >/dev/null; then mogrify -strip +dither -colors 128 docs/images/{overview,overview-dark,jobs,analytics,backups}.png; fi
ls -l docs/images
