#!/usr/bin/env bash
# Installs a real MySQL server for the tests into a separate folder, with an
# initialised data folder that each test server copies. It comes from Debian's
# unstable suite, as Debian's stable releases have MariaDB only; the system's
# packages, sources and apt state stay as they are. About 66 MB and half a minute.
#
#   mysql.sh [DIR]   default: CMSJOBS_TEST_MYSQL_DIR, or cmsjobs-test/mysql in the
#                    user's cache folder. Does nothing where it is installed.
#
# DIR then holds the starters mysqld, mysql and mysqldump. DEBIAN_MIRROR and
# DEBIAN_SUITE override where the packages come from. Remove DIR to remove everything.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

die() { echo "mysql.sh: $*" >&2; exit 1; }

# mirror prints the address from which this machine gets its own Debian packages.
mirror() {
  local found
  found=$({
    awk '/^URIs:/ {print $2}' /etc/apt/sources.list.d/*.sources
    awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) print $i}' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
  } 2>/dev/null | awk '/debian\/?$/ && !/security/ {print; exit}' || true)
  echo "${DEBIAN_MIRROR:-${found:-http://deb.debian.org/debian}}"
}

# sources prints from where the packages come, as apt reads it.
sources() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -r "$keyring" ] || die "$keyring is missing; install the package debian-archive-keyring"
  echo "deb [signed-by=$keyring] $(mirror) ${DEBIAN_SUITE:-sid} main"
}

# starters writes one script a program, which runs it on the C library that came with it.
starters() {
  local at=$1 lib name program
  lib=$(cd "$at" && echo files/usr/lib/*-linux-gnu)
  for name in mysqld mysql mysqldump; do
    program=bin/$name
    [ "$name" = mysqld ] && program='sbin/mysqld --no-defaults --basedir="$here/files/usr" --lc-messages-dir="$here/files/usr/share/mysql" --character-sets-dir="$here/files/usr/share/mysql/charsets" --plugin-dir="$here/files/usr/lib/mysql/plugin"'
    cat >"$at/$name" <<-END
	#!/bin/sh
	here=\$(cd "\$(dirname "\$0")" && pwd)
	export OPENSSL_CONF=/dev/null
	exec "\$here"/$lib/ld-linux*.so.? --library-path "\$here/$lib:\$here/$lib/mysql/private" "\$here/files/usr/"$program "\$@"
	END
    chmod +x "$at/$name"
  done
}

install() {
  local at=$1 deb as=()
  mkdir "$at/apt"
  sources >"$at/apt/sources.list"
  download "$at/apt" mysql-server-core mysql-client-core
  mkdir "$at/files"
  for deb in "$at"/apt/archives/*.deb; do
    case $deb in *perl*) ;; *) dpkg-deb -x "$deb" "$at/files" ;; esac # perl is for scripts that we do not run
  done
  rm -rf "$at/apt"
  starters "$at"
  [ "$(id -u)" != 0 ] || as=(--user=root)
  # root also from outside loopback, as in the servers of a container.
  printf "CREATE USER root@'%%';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" >"$at/accounts.sql"
  "$at/mysqld" "${as[@]}" --initialize-insecure --datadir="$at/template" --innodb-redo-log-capacity=16M --skip-log-bin \
    --init-file="$at/accounts.sql" 2>"$at/initialize.log" || { tail -5 "$at/initialize.log" >&2; die "could not initialise $at/template"; }
}

dir=$(realpath -m "${1:-${CMSJOBS_TEST_MYSQL_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cmsjobs-test/mysql}}")
mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
if [ ! -d "$dir" ]; then
  rm -rf "$dir.new"
  mkdir "$dir.new"
  install "$dir.new"
  mv "$dir.new" "$dir"
fi
"$dir/mysqld" --version
