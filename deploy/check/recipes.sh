#!/usr/bin/env bash
# Looks at the formula of Homebrew and the manifest of Scoop beside the archives of a release:
# addresses, sums, what is installed. The formula is carried out with this machine's archive,
# without Homebrew. Needs ruby, jq and unzip.
# Usage: deploy/check/recipes.sh DIST VERSION
set -euo pipefail
project=$(realpath "$(dirname "$0")/../..")
dist=$(realpath "$1") number=$2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
cd "$dist"
from=https://github.com/cmsjobs/cmsjobs/releases/download/v$number

ruby -c cmsjobs.rb >/dev/null
mkdir "$work/archive"; tar -xzf "cmsjobs_${number}_linux_$(go env GOARCH).tar.gz" -C "$work/archive"
ruby "$project/deploy/check/formula.rb" cmsjobs.rb "$work/archive" "$work/brew" >"$work/formula"
[ "$(cut -d' ' -f1 "$work/formula" | sort | xargs)" = "linux-arm linux-intel macos-arm macos-intel" ] || fail "the formula is for $(cat "$work/formula")"
while read -r at url sum; do
  case $at in macos-*) os=darwin ;; *) os=linux ;; esac
  case $at in *-arm) cpu=arm64 ;; *) cpu=amd64 ;; esac
  file=cmsjobs_${number}_${os}_$cpu.tar.gz
  [ "$url" = "$from/$file" ] || fail "the formula takes $url for $at"
  sha256sum --quiet --check <<<"$sum  $file" || fail "the formula's sum for $at is not that of $file"
done <"$work/formula"
for f in bin/cmsjobs man1/cmsjobs.1 bash_completion/cmsjobs zsh_completion/_cmsjobs fish_completion/cmsjobs.fish; do
  [ -s "$work/brew/$f" ] || fail "the formula installs no $f"
done

# What the schema of Scoop's manifests asks, for the fields that we have.
jq -e '(keys - ["version","description","homepage","license","architecture","bin","checkver","autoupdate"] == [])
  and (.version | test("^[\\w.+-]+$")) and (.homepage | startswith("https://")) and .license == "MIT"
  and (.architecture["64bit"] | keys == ["hash","url"] and (.hash | test("^[a-f0-9]{64}$")) and (.url | test("\\$") | not))
  and (.autoupdate.architecture["64bit"].url | contains("$version")) and (.autoupdate.hash.url | contains("$baseurl"))' cmsjobs.json >/dev/null ||
  fail "the manifest of Scoop is $(cat cmsjobs.json)"
url=$(jq -r '.architecture["64bit"].url' cmsjobs.json) zip=cmsjobs_${number}_windows_amd64.zip
[ "$url" = "$from/$zip" ] || fail "Scoop takes $url"
sha256sum --quiet --check <<<"$(jq -r '.architecture["64bit"].hash' cmsjobs.json)  $zip" || fail "Scoop's sum is not that of $zip"
unzip -Z1 "$zip" | grep -qx "$(jq -r .bin cmsjobs.json)" || fail "$zip has no program for Scoop"
[ "$(jq -r '.autoupdate.architecture["64bit"].url' cmsjobs.json | sed "s/\$version/$number/g")" = "$url" ] || fail "Scoop would look for an update elsewhere"
echo "recipes of $number: the formula for 4 systems and Scoop's manifest have the sums of the archives; the formula was carried out"
