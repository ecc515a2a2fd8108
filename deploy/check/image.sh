#!/usr/bin/env bash
# The steps of deploy/Dockerfile without an engine: builds the binary with the
# same flags, puts it into an otherwise empty root with a volume, and runs it
# there as nobody (65532): the sample site, the service, its health check, TERM.
# Needs root for chroot. Usage: deploy/check/image.sh [binary]
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$(mktemp -d); trap 'kill "${service:-}" 2>/dev/null || true; rm -rf "$root"' EXIT
mkdir -p "$root/usr/bin" "$root/tmp" "$root/cms" "$root/proc"
if [ $# -gt 0 ]; then cp "$1" "$root/usr/bin/cmsjobs"; else
  flags=$(sed -n 's/^ *go build \(.*\) -ldflags.*/\1/p' deploy/Dockerfile)
  # shellcheck disable=SC2086 # the flags are words
  CGO_ENABLED=0 go build $flags -ldflags "-s -w -X main.version=image" -o "$root/usr/bin/cmsjobs" ./cmd/cmsjobs
fi
if readelf -l "$root/usr/bin/cmsjobs" | grep -q INTERP; then echo "the binary needs a loader"; exit 1; fi
chown 65532:65532 "$root/tmp" "$root/cms"; chmod 0711 "$root"
inside() { env -i HOME=/tmp "${settings[@]}" "$(command -v chroot)" --userspec=65532:65532 "$root" /usr/bin/cmsjobs "$@"; }
port=$((20000 + RANDOM % 20000))
settings=(CMSJOBS_HTTP_LISTEN=127.0.0.1:$port CMSJOBS_CMS_DIR=/cms/site CMSJOBS_MAIL_DRIVER=log CMSJOBS_BACKUP_FREE_SPACE=64MiB)
inside version
inside demo --once --dir /cms/site
inside run >"$root/tmp/log" 2>&1 & service=$!
for _ in $(seq 100); do inside health >"$root/tmp/health" 2>&1 && break; sleep 0.2; done
cat "$root/tmp/health"
inside enqueue sitemap.generate
pid=$(pgrep -P "$service" || echo "$service")
kill -TERM $pid; wait "$service" || { cat "$root/tmp/log"; echo "it ended with $? after TERM"; exit 1; }
echo "static, $(stat -c %s "$root/usr/bin/cmsjobs") bytes; as 65532 in an empty root it does every job, is healthy and ends in order"
