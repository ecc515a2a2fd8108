#!/bin/sh
# Installs cmsjobs from a release: takes the archive for this system, compares its SHA-256
# with the release's checksums.txt, and puts the program into a folder.
# Usage: install.sh [--to FOLDER] [--version VERSION]
#   --to       where the program goes (default /usr/local/bin)
#   --version  for example 1.2.0 (default: the newest release)
# CMSJOBS_BASE_URL names another folder with a release's files, by https.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

# fetch URL FILE: https only, also after a redirect, which wget cannot promise; http only
# to this host.
fetch() {
  case $1 in
    https://*) only='=https' ;;
    http://127.0.0.1:*) only='=http' ;;
    *) fail "$1 is no https address" ;;
  esac
  curl --fail --silent --show-error --location --proto "$only" --retry 2 --output "$2" "$1" ||
    fail "$1 cannot be downloaded"
}

# digest FILE prints its SHA-256.
digest() {
  if command -v sha256sum >/dev/null 2>&1; then sum=$(sha256sum "$1"); sum=${sum%% *}
  elif command -v shasum >/dev/null 2>&1; then sum=$(shasum -a 256 "$1"); sum=${sum%% *}
  elif command -v openssl >/dev/null 2>&1; then sum=$(openssl dgst -sha256 "$1"); sum=${sum##* }
  else fail "no program for SHA-256 is here: sha256sum, shasum or openssl"; fi
  echo "$sum"
}

# All of it is one function, so that a download that was cut off runs nothing.
main() {
  to=/usr/local/bin version=
  while [ $# -gt 0 ]; do
    case $1 in
      --to) [ $# -gt 1 ] || fail "--to needs a folder"; to=$2; shift 2 ;;
      --version) [ $# -gt 1 ] || fail "--version needs a version"; version=${2#v}; shift 2 ;;
      *) fail "unknown: $1; usage: install.sh [--to FOLDER] [--version VERSION]" ;;
    esac
  done
  releases=https://github.com/cmsjobs/cmsjobs/releases
  if [ -n "$version" ]; then base=$releases/download/v$version; else base=$releases/latest/download; fi
  base=${CMSJOBS_BASE_URL:-$base}

  system=$(uname -s)
  case $system in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "no release is made for $system: linux and darwin" ;;
  esac
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) machine=amd64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) fail "no release is made for $machine: amd64 and arm64" ;;
  esac
  command -v curl >/dev/null 2>&1 || fail "curl is not here: install it first"
  [ -d "$to" ] || fail "there is no folder $to"
  [ -w "$to" ] || fail "$to cannot be written: run this with sudo, or name another folder with --to"

  work=$(mktemp -d)
  staged=$to/.cmsjobs.$$
  trap 'rm -rf "$work" "$staged"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch "$base/checksums.txt" "$work/checksums.txt"
  # One line each: SHA-256, two blanks, name.
  line=$(grep -E "^[0-9a-f]{64}  cmsjobs_${version:-[^/ ]*}_${system}_$machine\.tar\.gz\$" "$work/checksums.txt") ||
    fail "$base/checksums.txt names no archive for $system $machine"
  [ "$(echo "$line" | wc -l)" -eq 1 ] || fail "$base/checksums.txt names several archives for $system $machine"
  archive=${line##* }
  fetch "$base/$archive" "$work/$archive"
  [ "$(digest "$work/$archive")" = "${line%% *}" ] ||
    fail "$archive is not what checksums.txt says: nothing was installed"
  tar -xzf "$work/$archive" -C "$work" cmsjobs || fail "$archive holds no program"
  cp "$work/cmsjobs" "$staged"
  chmod 0755 "$staged"
  installed=$("$staged" version) || fail "the program does not run here"
  mv -f "$staged" "$to/cmsjobs" # whole, or not at all; a running service keeps its old file
  echo "$to/cmsjobs: $installed"
  echo "Next, beside a site: sudo $to/cmsjobs --cms /var/www/site setup"
}

main "$@"
