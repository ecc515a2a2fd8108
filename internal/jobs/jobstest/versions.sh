#!/usr/bin/env bash
# Runs a database server of another version than this system's, without a container
# engine: its packages come from Debian's or Ubuntu's archive into a separate folder, and the
# server runs in it by chroot. It listens on loopback only, has no password and
# loses its data when it ends. Needs root, and Debian or Ubuntu.
#
#   versions.sh                          lists the servers
#   versions.sh SERVER PORT [OPTION...]  installs SERVER if it is not there, and runs
#                                        it until it is killed: versions.sh mysql-5.7 3357
#   versions.sh clients SERVER           installs SERVER, and prints the folder of its clients
#
# CMSJOBS_TEST_VERSIONS_DIR is where they are installed; default: cmsjobs-test/versions in
# the user's cache folder.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

die() { echo "versions.sh: $*" >&2; exit 1; }

debian=http://deb.debian.org/debian ubuntu=http://archive.ubuntu.com/ubuntu
# name, archive, suites, packages
servers="
mysql-5.7       $ubuntu  bionic,bionic-updates  mysql-server-core-5.7,mysql-client-core-5.7,mysql-client-5.7
mysql-8.0       $ubuntu  jammy,jammy-updates    mysql-server-core-8.0,mysql-client-core-8.0
mysql-8.4       $ubuntu  resolute               mysql-server-core,mysql-client-core
mariadb-10.5    $debian  bullseye               mariadb-server-core-10.5,mariadb-client-core-10.5
mariadb-10.11   $debian  bookworm               mariadb-server-core,mariadb-client-core
mariadb-11.8    $debian  trixie                 mariadb-server-core,mariadb-client-core
postgresql-13   $debian  bullseye               postgresql-13
postgresql-14   $ubuntu  jammy,jammy-updates    postgresql-14
postgresql-15   $debian  bookworm               postgresql-15
postgresql-16   $ubuntu  noble,noble-updates    postgresql-16
postgresql-17   $debian  trixie                 postgresql-17
postgresql-18   $debian  sid                    postgresql-18
"

# ubuntu_key prints the path of Ubuntu's keys, which Debian has no package of.
ubuntu_key() {
  local at=$1 sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
  curl -fsS -o "$at/keys.deb" "$ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
  echo "$sum  $at/keys.deb" | sha256sum --check --quiet >&2 || die "Ubuntu's keys are not those that this script knows"
  dpkg-deb -x "$at/keys.deb" "$at/keys"
  echo "$at/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
}

# sources prints from where packages come, as apt reads it; $1 is a folder for Ubuntu's keys.
sources() {
  local key=/usr/share/keyrings/debian-archive-keyring.gpg parts=main suite
  if [ "$2" = "$ubuntu" ]; then key=$(ubuntu_key "$1") parts='main universe'; fi
  [ -r "$key" ] || die "$key is missing; install the package debian-archive-keyring"
  for suite in ${3//,/ }; do
    echo "deb [signed-by=$key check-valid-until=no] $2 $suite $parts"
  done
}

# clients writes scripts to $1/client that run MySQL's clients from outside of the folder.
clients() {
  local name lib
  [ -x "$1/usr/bin/mysqldump" ] || return 0
  lib=$(cd "$1" && echo usr/lib/*-linux-gnu)
  mkdir "$1/client"
  for name in mysql mysqldump; do
    cat >"$1/client/$name" <<-END
	#!/bin/sh
	here=\$(cd "\$(dirname "\$0")/.." && pwd)
	first=
	case \${1:-} in --no-defaults | --defaults-*) first=\$1; shift ;; esac # has to stay the first
	exec "\$here"/$lib/ld-linux*.so.? --library-path "\$here/$lib:\$here/$lib/mysql/private" "\$here/usr/bin/$name" \\
	  \${first:+"\$first"} --character-sets-dir="\$here/usr/share/mysql/charsets" "\$@"
	END
    chmod +x "$1/client/$name"
  done
}

# install makes the folder $1 with what the server needs to run in it: archive, suites, packages.
install() {
  local root=$1 deb dir
  mkdir -p "$root" "$root.apt"
  sources "$root.apt" "$2" "$3" >"$root.apt/sources.list"
  download "$root.apt" dash coreutils sed grep hostname tzdata ${4//,/ }
  for dir in bin sbin lib lib64; do mkdir -p "$root/usr/$dir"; ln -s "usr/$dir" "$root/$dir"; done
  for deb in "$root".apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root"
  done
  ln -sf dash "$root/usr/bin/sh"
  mkdir -p "$root"/{dev,etc,tmp,data,proc}
  chmod 1777 "$root/tmp"
  echo 'server:x:999:999::/data:/bin/sh' >"$root/etc/passwd"
  echo 'server:x:999:' >"$root/etc/group"
  mknod -m 666 "$root/dev/null" c 1 3
  mknod -m 666 "$root/dev/urandom" c 1 9
  mknod -m 666 "$root/dev/zero" c 1 5
  rm -rf "$root.apt"
  clients "$root"
}

# within runs a command in the server's folder, as its account.
within() { (exec_within "$@"); }
exec_within() { exec chroot --userspec=999:999 "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin HOME=/data "$@"; }

# serve runs the server until one of the two is killed.
serve() {
  exec_within "$@" &
  local server=$!
  trap 'kill "$server" 2>/dev/null || true' TERM INT
  while kill -0 "$server" 2>/dev/null; do wait "$server" || true; done
}

# accounts writes what makes root an account of every host, as in the servers of a container.
accounts() { printf "CREATE USER root@'%%';\nGRANT ALL ON *.* TO root@'%%' WITH GRANT OPTION;\n" >"$root/tmp/accounts.sql"; }

run_mysql() {
  local own=()
  [ "$name" = mysql-5.7 ] || own=(--mysqlx=OFF)
  accounts
  within mysqld --no-defaults --initialize-insecure --datadir=/data --init-file=/tmp/accounts.sql ||
    { cat "$root"/data/*.err >&2 2>/dev/null; die "$name could not make its data"; }
  serve mysqld --no-defaults --datadir=/data --tmpdir=/tmp --socket=/tmp/s.sock --pid-file=/tmp/pid --port="$port" \
    --bind-address=127.0.0.1 "${own[@]}" --skip-name-resolve --secure-file-priv= --innodb-buffer-pool-size=128M \
    --innodb-doublewrite=0 --innodb-flush-log-at-trx-commit=2 --max-allowed-packet=128M --max-connections=500 "$@"
}

run_mariadb() {
  accounts
  within mariadb-install-db --no-defaults --force --auth-root-authentication-method=normal --skip-test-db --datadir=/data \
    >/dev/null || die "$name could not make its data"
  serve mariadbd --no-defaults --datadir=/data --tmpdir=/tmp --socket=/tmp/s.sock --pid-file=/tmp/pid --port="$port" \
    --bind-address=127.0.0.1 --init-file=/tmp/accounts.sql --skip-name-resolve --innodb-buffer-pool-size=128M \
    --innodb-log-file-size=64M --max-allowed-packet=128M --character-set-server=utf8mb4 \
    --collation-server=utf8mb4_unicode_ci --max-connections=500 "$@"
}

run_postgresql() {
  local bin=/usr/lib/postgresql/${name#postgresql-}/bin
  within "$bin/initdb" --username=postgres --auth=trust --encoding=UTF8 --locale=C -D /data >/dev/null
  serve "$bin/postgres" -D /data -k /tmp -p "$port" -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=500 \
    -c dynamic_shared_memory_type=mmap "$@"
}

only_clients=
if [ "${1:-}" = clients ]; then only_clients=1; shift; fi
name=${1:-} port=${2:-${only_clients}}
line=$(awk -v name="$name" '$1 == name' <<<"$servers")
[ -n "$name" ] || { awk 'NF {print $1}' <<<"$servers"; exit 0; }
[ -n "$line" ] || die "there is no server $name; versions.sh lists them"
[ -n "$port" ] || die "a port is missing: versions.sh $name 3357"
shift $(($# < 2 ? $# : 2))
[ "$(id -u)" = 0 ] || die "it needs root, for chroot"
read -r _ archive suites packages <<<"$line"
root=${CMSJOBS_TEST_VERSIONS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cmsjobs-test/versions}/$name
if [ -n "$only_clients" ] && [ -d "$root" ]; then echo "$root/client"; exit; fi
mkdir -p "$(dirname "$root")"
exec 9>"$root.lock"
flock -n 9 || die "$name runs already, with its data in $root"
if [ ! -d "$root" ]; then
  rm -rf "$root.new" "$root.new.apt"
  install "$root.new" "$archive" "$suites" "$packages"
  mv "$root.new" "$root"
fi
if [ -n "$only_clients" ]; then echo "$root/client"; exit; fi
rm -rf "$root/data"
mkdir "$root/data"
chown 999:999 "$root/data"
trap 'rm -rf "$root/data"' EXIT
run_${name%-*} "$@"
