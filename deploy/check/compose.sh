#!/usr/bin/env bash
# Carries docker-compose.yml out with a container engine: builds the image, starts everything, uses
# the page in a browser, stops and starts the service, upgrades it to another build, and takes
# everything down again.
#
# The engine is Docker with its Compose plugin, where a daemon answers: then the images are those
# that the files pin. Otherwise it is podman with docker-compose, and the images are the stand-ins
# of deploy/check/standins.sh. Where no container can be started at all, it says so and does
# nothing, unless CMSJOBS_COMPOSE=required.
#
# Needs chromium and the ports 8080, 8025 and 7070; without Docker also root, podman, runc,
# netavark, aardvark-dns, iptables, docker-compose, maildev and versitygw.
# CMSJOBS_COMPOSE_BUILD=host builds the program on this machine in place of the image's first
# stage, which is faster where the script itself is tried.
# Usage: deploy/check/compose.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d); up=
step() { printf '%s  %4ds  %s\n' compose: $SECONDS "$*"; }
fail() { echo "compose: $*" >&2; exit 1; }
skip() {
  [ "${CMSJOBS_COMPOSE:-}" != required ] || fail "no container can be started here: $*"
  echo "compose: skipped, as no container can be started here: $*"; exit 0
}
leave() {
  code=$?
  if [ -n "$up" ]; then
    [ $code = 0 ] || compose logs --tail 30 2>&1 | tail -80 || true
    compose down --volumes --timeout 5 >/dev/null 2>&1 || true
  fi
  if [ -n "${service:-}" ]; then
    podman rm --all --force --time 1 >/dev/null 2>&1 || true
    kill "$service" "${health:-$service}" 2>/dev/null || true; wait "$service" 2>/dev/null || true
    awk -v dir="$work/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount --lazy 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap leave EXIT

# podman as the engine: a storage and a socket of this run only.
stand_ins() {
  for p in podman runc docker-compose maildev versitygw; do command -v $p >/dev/null || skip "neither Docker's daemon nor $p"; done
  [ "$(id -u)" = 0 ] || skip "podman's networks need root"
  printf '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n[network]\nnetwork_backend="netavark"
[engine]\nruntime="runc"\nhelper_binaries_dir=["/usr/lib/podman","/usr/libexec/podman"]\n' >"$work/containers.conf"
  printf '[storage]\ndriver="overlay"\ngraphroot="%s/storage"\nrunroot="%s/run"\n' "$work" "$work" >"$work/storage.conf"
  export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf
  mkdir -p "$work/probe"; printf 'FROM scratch\nCOPY probe /probe\nCMD ["/probe"]\n' >"$work/probe/Dockerfile"
  printf 'package main\nfunc main() {}\n' >"$work/probe.go"; CGO_ENABLED=0 go build -o "$work/probe/probe" "$work/probe.go"
  { podman build --quiet --tag probe "$work/probe" && podman run --rm --publish 127.0.0.1:8080:80 probe; } >"$work/probe.log" 2>&1 ||
    skip "$(tail -1 "$work/probe.log")"
  deploy/check/standins.sh "$work/standins" >"$work/standins.log" 2>&1 || { cat "$work/standins.log"; fail "the stand-ins were not built"; }
  rm -rf "$work/standins"
  podman system service --time=0 "unix://$work/socket" >"$work/service.log" 2>&1 & service=$!
  export DOCKER_HOST=unix://$work/socket
  for _ in $(seq 100); do [ -S "$work/socket" ] && break; sleep 0.1; done
  # podman leaves health checks to timers of systemd, which may not be there.
  (while sleep 1; do for c in $(podman ps --quiet); do podman healthcheck run "$c" || true; done; done) >/dev/null 2>&1 & health=$!
  # Stand-ins have other digests.
  sed -i -E 's/@sha256:[0-9a-f]{64}//' "$work/cms/deploy/Dockerfile" "$work/cms/docker-compose.yml"
  inspect() { podman inspect --format "$2" "$1"; }
}

# What is in Git, in a folder named for the project.
mkdir "$work/cms"; git ls-files -z | xargs -0 cp --parents -t "$work/cms"
inspect() { docker inspect --format "$2" "$1"; }
if docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; then
  engine=Docker; compose() { (cd "$work/cms" && docker compose "$@"); }
else
  engine="podman with stand-ins"; compose() { (cd "$work/cms" && docker-compose --ansi never "$@"); }
  stand_ins; step "stand-ins for the images"
fi
build() { # the image of a version
  if [ "${CMSJOBS_COMPOSE_BUILD:-}" = host ]; then
    flags=$(sed -n 's/^ *go build \(.*\) -ldflags.*/\1/p' deploy/Dockerfile)
    # shellcheck disable=SC2086 # the flags are words
    CGO_ENABLED=0 go build $flags -ldflags "-s -w -X main.version=$1" -o "$work/cms/program" ./cmd/cmsjobs
    if grep -q -- --from=build "$work/cms/deploy/Dockerfile"; then # the first time
      sed -i -e '1,/^FROM.*distroless/{/^FROM.*distroless/!d}' -e 's|--from=build /out/cmsjobs|program|' "$work/cms/deploy/Dockerfile"
    fi
  fi
  compose build --build-arg "VERSION=$1" ${2:-} >"$work/build.log" 2>&1 || { tail -40 "$work/build.log"; fail "the image was not built"; }
}
id() { compose ps -q cmsjobs; }
password=$(sed -n 's/^ *CMSJOBS_HTTP_ADMIN_PASSWORD: //p' docker-compose.yml)
cms() { compose exec -T cmsjobs /usr/bin/cmsjobs "$@"; }
ready() {
  for _ in $(seq 300); do curl -fsS -o /dev/null http://127.0.0.1:8080/readyz 2>/dev/null && return; sleep 0.4; done
  fail "the page does not answer"
}

up=yes
build 9.9.8
step "the image is built"
compose up -d >"$work/up.log" 2>&1 || { tail -40 "$work/up.log"; fail "it does not start"; }
ready; step "everything is started"

# What the first lines of the file promise.
waiting=$(grep -c "('default'" deploy/compose/jobs.sql || true)
for _ in $(seq 150); do
  completed=$(cms jobs list --json --status completed --limit 200 | jq '.items // . | length')
  [ "$completed" -ge "$waiting" ] && break; sleep 1
done
[ "$completed" -ge "$waiting" ] || { cms jobs list; fail "of the sample's $waiting jobs $completed are completed"; }
[ "$(cms failed list --json | jq '.items // . | length')" = 0 ] || { cms failed list; fail "jobs failed"; }
curl -fsS http://127.0.0.1:8025/ | grep -qi '<html' || fail "the mail catcher has no page"
{ curl -fsS http://127.0.0.1:8025/email 2>/dev/null || curl -fsS http://127.0.0.1:8025/api/v1/messages; } | grep -qi '"subject": *"Hello"' || fail "no mail was sent"
[ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:7070/cms)" = 403 ] || fail "the S3 server refuses nobody"
cms backup list --json >"$work/backups"
for place in local s3; do grep -q "\"destination\": *\"$place" "$work/backups" || { cat "$work/backups"; fail "no backup at $place"; }; done
step "the sample's $waiting jobs are done: mail, backup in the folder and in the bucket"
CMSJOBS_HTTP_ADMIN_PASSWORD=$password go run -C docs/screenshots ./visit
step "used in a browser"

begun=$SECONDS container=$(id)
compose stop cmsjobs >/dev/null 2>&1
[ "$(inspect "$container" '{{.State.ExitCode}}')" = 0 ] || fail "stopped, it ends with $(inspect "$container" '{{.State.ExitCode}}')"
[ $((SECONDS - begun)) -lt 45 ] || fail "it was killed after its time"
compose start cmsjobs >/dev/null 2>&1; ready
kept=$(cms jobs list --json --status completed --limit 200 | jq '.items // . | length')
[ "$kept" -ge "$completed" ] || fail "of $completed completed jobs $kept are there after a restart"
step "stopped in order and started again"

# Jobs wait over the upgrade, and the new build does them.
build 9.9.9 cmsjobs
for _ in 1 2 3 4 5; do cms enqueue cmsjobs.probe '{"sleep":"2s"}' >/dev/null; done
compose up -d --no-deps cmsjobs >"$work/up.log" 2>&1 || { tail -40 "$work/up.log"; fail "it is not upgraded"; }
ready
[ "$(id)" != "$container" ] || fail "the old container runs"
cms version | grep -q 9.9.9 || fail "the version is $(cms version)"
for _ in $(seq 90); do
  probes=$(cms jobs list --json --type cmsjobs.probe --status completed | jq '.items // . | length')
  [ "$probes" = 5 ] && break; sleep 1
done
[ "$probes" = 5 ] || { cms jobs list; fail "after the upgrade $probes of 5 waiting jobs are done"; }
step "upgraded to another build, which does the jobs that waited"

compose down --volumes >"$work/down.log" 2>&1 || { tail -20 "$work/down.log"; fail "it is not taken down"; }
[ -z "$(compose ps -q)" ] || fail "containers are left"
up=; step "taken down; the engine was $engine"
