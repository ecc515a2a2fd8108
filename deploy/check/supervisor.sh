#!/usr/bin/env bash
# Gives deploy/cmsjobs.supervisor.conf, with other places, to a real supervisord:
# both processes run, one of them has the page and a scheduler runs, and they end
# in order when they are stopped. Needs root, as the file names an account. Usage: deploy/check/supervisor.sh [binary]
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d); chmod 0755 "$dir"
control() { supervisorctl -c "$dir/supervisord.conf" "$@"; }
trap 'control shutdown >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
if [ $# -gt 0 ]; then cp "$1" "$dir/cmsjobs"; else go build -o "$dir/cmsjobs" ./cmd/cmsjobs; fi
"$dir/cmsjobs" demo --seed-only --dir "$dir/site" >/dev/null
mkdir "$dir/log"; chown -R www-data "$dir/site" "$dir/log"
sed "s|/usr/local/bin|$dir|; s|CMSJOBS_LOG_FORMAT=\"json\"|CMSJOBS_LOG_FORMAT=\"json\",CMSJOBS_CONFIG=\"$dir/cmsjobs.yaml\"|; s|/var/www/site|$dir/site|g; s|/var/log/supervisor|$dir/log|" deploy/cmsjobs.supervisor.conf >"$dir/program.conf"
printf "http: {listen: 127.0.0.1:%s}\nconditions: {every: 1s}\n" "${PORT:=18431}" >"$dir/cmsjobs.yaml"
cat >"$dir/supervisord.conf" <<END
[supervisord]
logfile=$dir/supervisord.log
pidfile=$dir/pid
[unix_http_server]
file=$dir/socket
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://$dir/socket
[include]
files=$dir/program.conf
END
supervisord -c "$dir/supervisord.conf"
for _ in $(seq 120); do
  running=$(control status | grep -c RUNNING || true)
  [ "$running" = 2 ] && break; sleep 0.5
done
[ "$running" = 2 ] || { control status; cat "$dir/supervisord.log" "$dir"/log/*; exit 1; }
for _ in $(seq 60); do
  # What runs is asked of doctor: two schedulers, and a page.
  found=$(CMSJOBS_CMS_DIR="$dir/site" CMSJOBS_CONFIG="$dir/cmsjobs.yaml" "$dir/cmsjobs" doctor 2>/dev/null || true)
  grep -q "2 schedulers of ours" <<<"$found" && curl -fsS -o /dev/null "http://127.0.0.1:$PORT/livez" && ok=yes && break; sleep 0.5
done
[ "${ok:-}" = yes ] || { echo "$found"; cat "$dir"/log/*; exit 1; }
control stop all >/dev/null
[ "$(grep -c 'stopped: .* (exit status 0)' "$dir/supervisord.log")" = 2 ] || { cat "$dir/supervisord.log"; exit 1; }
echo "supervisor: two processes run, both schedule, one has the page, and they end in order"
