#!/usr/bin/env bash
# Runs the tests of the packages that speak to a database on a server of another version
# (versions.sh), as CI's matrix does with containers:
#
#   matrix.sh SERVER [OPTION...]     matrix.sh mysql-8.4 --gtid-mode=ON --enforce-gtid-consistency=ON
#
# CMSJOBS_TEST_ACCOUNT names an account without rights on the server, which the tests make.
# PACKAGES are the packages, RUN is which tests (go test -run), PORT is where the server listens.
set -euo pipefail
cd "$(dirname "$0")/../../.."

if [ $# = 0 ]; then exec internal/jobs/jobstest/versions.sh; fi
server=$1 port=${PORT:-23306}
case $server in
  mysql-*)
    variable=CMSJOBS_TEST_MYSQL_PORT pattern='/mysql|MySQL'
    CMSJOBS_TEST_MYSQL_CLIENT_DIR=$(internal/jobs/jobstest/versions.sh clients "$server")
    export CMSJOBS_TEST_MYSQL_CLIENT_DIR
    ;;
  mariadb-*) variable=CMSJOBS_TEST_MARIADB_PORT pattern='/mariadb|MariaDB' ;;
  *) variable=CMSJOBS_TEST_POSTGRES_PORT pattern='/postgres|PostgreSQL' ;;
esac
packages=${PACKAGES:-./internal/jobs ./internal/handlers/backup ./internal/cli ./internal/jobs/... ./internal/feed/... ./internal/cms
  ./internal/handlers/... ./internal/web/access ./cmd/...}
log=$(mktemp)
internal/jobs/jobstest/versions.sh "$server" "$port" "${@:2}" >"$log" 2>&1 &
running=$!
trap 'kill "$running" 2>/dev/null; wait "$running"; rm -f "$log"' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
  kill -0 "$running" 2>/dev/null || { tail -20 "$log" >&2; exit 1; }
  sleep 0.5
done
# shellcheck disable=SC2086 # packages are words
env "$variable=$port" go test -count=1 -p $(($(nproc) + 1)) -timeout 60m -run "${RUN:-$pattern}" $packages
