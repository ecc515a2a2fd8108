#!/usr/bin/env bash
# Lets `cmsjobs setup` put the service beside a site with each of the real supervisors: systemd,
# supervisord and cron. Each takes what setup writes, the service does a job, and after
# `setup --remove` nothing of it is left.
#
# This happens in a container that has systemd as its first process, and over this host's own
# root, read only: nothing here changes, and no image is needed. Where no container can be
# started, it says so and does nothing, unless CMSJOBS_SETUP=required.
#
# Needs root, podman, runc, systemd, supervisor and cron.
# Usage: deploy/check/setup.sh [binary]
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "setup: $*" >&2; exit 1; }

# In the container: the checks.
if [ "${1:-}" = --inside ]; then
  site=/srv/site places="/etc/systemd/system /etc/supervisor /etc/cmsjobs /var/spool/cron /srv/site"
  traces() { for p in $places; do [ ! -e "$p" ] || find "$p" \( -type f -exec sha256sum {} + \) -o \( -type l -print \); done | sort; }
  waited() { # for what, at most so many seconds, until a command succeeds
    local what=$1 n=$2; shift 2
    for _ in $(seq $((n * 2))); do "$@" >/dev/null 2>&1 && return; sleep 0.5; done
    journalctl --no-pager -n 40 || true; cat /srv/site/storage/logs/*.log 2>/dev/null | tail -20 || true
    fail "not within $n s: $what"
  }
  systemctl start supervisor cron
  cmsjobs demo --seed-only --dir $site >/dev/null
  chown -R www-data: $site
  waited "supervisord answers" 30 supervisorctl pid
  for way in systemd supervisor cron; do
    traces >/run/before
    cmsjobs --cms $site setup --way $way --yes >/run/said 2>&1 || { cat /run/said; fail "setup --way $way"; }
    grep -q "verified: restored" /run/said || { cat /run/said; fail "$way: the backup is not verified"; }
    config=$(sed -n 's/^wrote \([^ ]*\.yaml\):.*/\1/p' /run/said | head -1)
    case $way in
      systemd) waited "the unit is active" 30 systemctl is-active cmsjobs; systemctl is-enabled --quiet cmsjobs ;;
      supervisor) waited "the program runs" 30 sh -c 'supervisorctl status cmsjobs | grep RUNNING' ;;
      cron) crontab -u www-data -l | grep -q "tick" || fail "the crontab has no line" ;;
    esac
    if [ $way != cron ]; then
      page=$(sed -n 's|^The page: *\(http://[^/ ]*\).*|\1|p' /run/said)
      waited "the page $page answers" 30 curl -fsS "$page/livez"
    fi
    id=$(cmsjobs --config "$config" enqueue cmsjobs.probe '{}' | grep -oE '[0-9a-f-]{36}' | head -1)
    waited "$way: the service does job $id" 90 sh -c "cmsjobs --config $config jobs show $id --json | grep -q '\"status\": *\"completed\"'"
    cmsjobs --cms $site setup --remove --yes >/run/said 2>&1 || { cat /run/said; fail "setup --remove after $way"; }
    case $way in
      systemd) ! systemctl cat cmsjobs >/dev/null 2>&1 || fail "systemd knows the unit" ;;
      supervisor) ! supervisorctl status | grep -q cmsjobs || fail "supervisord knows the program" ;;
      cron) ! crontab -u www-data -l 2>/dev/null | grep -q cmsjobs || fail "cron has the line" ;;
    esac
    ! pgrep -f "cmsjobs .*(run|tick)" >/dev/null || fail "a process of the service is left: $(pgrep -fa cmsjobs)"
    traces >/run/after
    # An empty crontab is none, and the jobs that were done are in the database.
    other() { grep -vE '/var/spool/cron|/database/database.sqlite$' "$1"; }
    diff <(other /run/before) <(other /run/after) >/run/left || { cat /run/left; fail "setup --remove after $way leaves this"; }
    echo "setup: $way: taken by the real one, a job done, removed without a trace"
  done
  exit
fi

skip() {
  [ "${CMSJOBS_SETUP:-}" != required ] || fail "it cannot be checked here: $*"
  echo "setup: skipped, as it cannot be checked here: $*"; exit 0
}
work=$(mktemp -d); chmod 0755 "$work"
leave() {
  podman rm --force --time 1 setup >/dev/null 2>&1 || true
  awk -v dir="$work/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount --lazy 2>/dev/null || true
  rm -rf "$work"
}
trap leave EXIT
[ "$(id -u)" = 0 ] || skip "not root"
for p in podman runc supervisord cron /lib/systemd/systemd; do command -v $p >/dev/null || skip "no $p"; done
if [ $# -gt 0 ]; then cp "$1" "$work/cmsjobs"; else CGO_ENABLED=0 go build -tags nodynamic -o "$work/cmsjobs" ./cmd/cmsjobs; fi
cp "$0" "$work/setup.sh" 2>/dev/null || cp deploy/check/setup.sh "$work/setup.sh"
printf '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n[engine]\nruntime="runc"\n' >"$work/containers.conf"
printf '[storage]\ndriver="overlay"\ngraphroot="%s/storage"\nrunroot="%s/run"\n' "$work" "$work" >"$work/storage.conf"
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
podman run --detach --name setup --systemd=always --network none --hostname setup --cap-add SYS_ADMIN \
  --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
  --tmpfs /run:notmpcopyup --tmpfs /tmp:notmpcopyup,exec,mode=1777 --tmpfs /srv:notmpcopyup,exec,mode=0755 \
  --volume "$work/cmsjobs:/usr/local/bin/cmsjobs:ro" --volume "$work/setup.sh:/opt/check/deploy/check/setup.sh:ro" \
  --rootfs /:O /lib/systemd/systemd --unit=basic.target >"$work/log" 2>&1 || skip "no container can be started: $(tail -1 "$work/log")"
for _ in $(seq 60); do
  state=$(podman exec setup systemctl is-system-running 2>&1 || true)
  case $state in running | degraded) break ;; esac; sleep 0.5
done
case $state in running | degraded) ;; *) skip "systemd is no first process of a container here: $(tail -1 <<<"$state")" ;; esac
podman exec --env LC_ALL=C setup bash /opt/check/deploy/check/setup.sh --inside
echo "setup: systemd, supervisord and cron of this host's packages"
