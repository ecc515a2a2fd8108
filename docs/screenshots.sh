#!/usr/bin/env bash
# Makes docs/images/*.png: starts the demo with an account, and photographs its
# pages by a headless Chromium. Usage: docs/screenshots.sh [page …]
set -euo pipefail
cd "$(dirname "$0")/.."
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
pages=("$@"); [ ${#pages[@]} -gt 0 ] || pages=(/ /api/docs)
dir=$(mktemp -d); port=$((20000 + RANDOM % 20000)); address="http://127.0.0.1:$port"
go build -tags nodynamic -o "$dir/cmsjobs" ./cmd/cmsjobs
"$dir/cmsjobs" --set "http.listen=127.0.0.1:$port" --set http.admin_password=screenshot demo --dir "$dir/site" >"$dir/log" 2>&1 &
demo=$!
trap 'kill $demo 2>/dev/null || true; wait $demo 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in $(seq 100); do curl -fsS -o "$dir/ready" "$address/readyz" 2>"$dir/curl" && break; kill -0 $demo || { cat "$dir/log"; exit 1; }; sleep 0.2; done
sleep 5 # for some jobs to be done
mkdir -p docs/images
for page in "${pages[@]}"; do
  name=$(echo "${page#/}" | tr -c 'a-zA-Z0-9\n' - | sed 's/-*$//'); name=${name:-overview}
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,860 --virtual-time-budget=8000 \
    --user-data-dir="$dir/browser" --screenshot="$PWD/docs/images/$name.png" "http://admin:screenshot@127.0.0.1:$port$page" >"$dir/browser.log" 2>&1 ||
    { cat "$dir/browser.log"; exit 1; }
  echo "docs/images/$name.png"
done
