#!/usr/bin/env bash
# Builds stand-ins for the images that deploy/Dockerfile and docker-compose.yml name, where no
# registry can be reached: from Debian's packages and programs of this machine, under the same
# names and tags. What one does differently from the real image:
#
#   mysql        MySQL 9.7 of internal/jobs/jobstest/mysql.sh. Of the real entry point it has the
#                four variables MYSQL_*, the .sql files of /docker-entrypoint-initdb.d, and that a
#                volume that was initialised stays as it is.
#   mailpit      maildev behind Mailpit's ports 1025 and 8025; its page and API are maildev's.
#   versitygw    the same program, from its source.
#   busybox      Debian's busybox-static.
#   golang       this machine's Go, with the modules that it has fetched already.
#   distroless   an empty root with certificates, zones and the account nonroot (65532).
#
# Usage: deploy/check/standins.sh FOLDER   (FOLDER is for the contexts of the builds)
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(realpath "$1")
here=$PWD/deploy/check/standins

# tag prints the name and tag that a file gives to an image, by a word of its name.
tag() { sed -nE "s#^(FROM +(--[a-z]+=[^ ]+ +)*| +image: +)([^ @]*$1[^ @]*)@.*#\3#p" deploy/Dockerfile docker-compose.yml | head -1; }

# libraries copies a program with what its loader needs into a root.
libraries() {
  local root=$1 program=$2 f
  for f in $(ldd "$program" | grep -oE '/[^ ]+'); do
    mkdir -p "$root$(dirname "$f")"; cp -L "$f" "$root$f"
  done
}

# full completes a name as the engine does.
full() {
  case $1 in
    *.*/*) echo "$1" ;;
    */*) echo "docker.io/$1" ;;
    *) echo "docker.io/library/$1" ;;
  esac
}

image() {
  podman build --quiet --tag "$(full "$1")" --file "$here/$2.Dockerfile" "$work/$2" >/dev/null
  echo "stand-in: $1"
}

mkdir -p "$work"/{busybox,mysql,mailpit,versitygw,golang,distroless}
if ! busybox=$(command -v busybox) || ldd "$busybox" >/dev/null 2>&1; then
  (cd "$work" && apt-get download -qq busybox-static 2>/dev/null && dpkg-deb -x busybox-static_*.deb static)
  busybox=$(find "$work/static" -path '*/bin/busybox')
fi
cp "$busybox" "$work/busybox/busybox"
image "$(tag busybox)" busybox
podman tag "$(full "$(tag busybox)")" localhost/cmsjobs-stand-in-busybox

bash internal/jobs/jobstest/mysql.sh
mysql=${CMSJOBS_TEST_MYSQL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cmsjobs-test/mysql}
cp -r "$mysql/files" "$work/mysql/"; cp "$here/mysql.sh" "$work/mysql/"
image "$(tag mysql)" mysql

maildev=$(realpath "$(command -v maildev)"); node=$(realpath "$(command -v node)")
mkdir -p "$work/mailpit/root/usr/bin"; cp "$node" "$work/mailpit/root/usr/bin/node"
libraries "$work/mailpit/root" "$node"
cp -r "${maildev%/bin/*}" "$work/mailpit/maildev"
image "$(tag mailpit)" mailpit

versity=$(command -v versitygw)
mkdir -p "$work/versitygw/root"; cp "$versity" "$work/versitygw/versitygw"
libraries "$work/versitygw/root" "$versity" 2>/dev/null || true # one without libraries
image "$(tag versitygw)" versitygw

# The modules of this commit only, fetched from what this machine has or else from its proxy.
cache=$(go env GOMODCACHE)/cache/download
GOFLAGS=-modcacherw GOMODCACHE=$work/modules GOPROXY="file://$cache,$(go env GOPROXY)" GOSUMDB=off go mod download
cp -r "$(go env GOROOT)" "$work/golang/go"; rm -rf "$work/golang/go/test"
mv "$work/modules/cache/download" "$work/golang/modules"; rm -rf "$work/modules"
image "$(tag golang)" golang

cp /etc/ssl/certs/ca-certificates.crt "$work/distroless/"
cp -r /usr/share/zoneinfo "$work/distroless/zoneinfo"
image "$(tag distroless)" distroless
