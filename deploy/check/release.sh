#!/usr/bin/env bash
# Looks into what goreleaser and release-recipes.sh made: sums, archives, packages, SBOMs,
# the formula of Homebrew and the manifest of Scoop. Needs jq, ruby and unzip.
# With a second folder, of another build of the same commit: both hold the same
# bytes, but for the SBOMs, which have their own number and time.
# Usage: deploy/check/release.sh DIST [OTHER]
set -euo pipefail
dist=$(realpath "$1"); other=${2:+$(realpath "$2")}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
project=$(realpath "$(dirname "$0")/../..")
# What the binary of a system (linux_amd64) is made of, a module and its version a line.
modules() { GOOS=${1%_*} GOARCH=${1#*_} go list -C "$project" -tags nodynamic -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}' ./cmd/cmsjobs | sort -u; }
wanted="LICENSE README.md CHANGELOG.md config/config.example.yaml deploy/cmsjobs.service deploy/cmsjobs.supervisor.conf
  man/cmsjobs.1 man/cmsjobs-backup-create.1 completions/cmsjobs.bash completions/cmsjobs.zsh completions/cmsjobs.fish cmsjobs"

cd "$dist"
sha256sum --quiet --check checksums.txt
for system in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64; do
  mkdir "$work/$system"
  if [ "$system" = windows_amd64 ]; then
    archive=$(ls cmsjobs_*_"$system".zip); unzip -q "$archive" -d "$work/$system"
    mv "$work/$system/cmsjobs.exe" "$work/$system/cmsjobs"
  else
    archive=$(ls cmsjobs_*_"$system".tar.gz); tar -xzf "$archive" -C "$work/$system"
  fi
  for f in $wanted; do [ -s "$work/$system/$f" ] || fail "$archive has no $f"; done
  grep -q " $archive\$" checksums.txt || fail "no sum of $archive"
  grep -q " $archive.sbom.json\$" checksums.txt || fail "no sum of the SBOM of $archive"
  jq -r '.packages[] | "\(.name) \(.versionInfo)"' "$archive.sbom.json" | sort -u >"$work/named"
  modules "$system" >"$work/linked"
  missing=$(comm -23 "$work/linked" "$work/named"); [ -z "$missing" ] || fail "the SBOM of $archive does not name $missing"
done
native=$work/linux_$(go env GOARCH)
version=$("$native/cmsjobs" version)
grep -q "$(jq -r .version metadata.json)" <<<"$version" || fail "the binary says it is $version"
bash -n "$native/completions/cmsjobs.bash"

for package in cmsjobs_*_linux_*.deb; do
  rm -rf "$work/deb"; dpkg-deb --extract "$package" "$work/deb"
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$work/deb/lib/systemd/system/cmsjobs.service")
  [ -x "$work/deb$program" ] || fail "the unit of $package starts $program, which is not in it"
  [ -s "$work/deb/usr/share/man/man1/cmsjobs.1" ] || fail "$package has no manual page"
done

"$project/deploy/check/recipes.sh" . "$(jq -r .version metadata.json)"

if [ -n "$other" ]; then
  for f in cmsjobs_*.tar.gz cmsjobs_*.zip cmsjobs_*.deb cmsjobs_*.rpm cmsjobs_*.apk; do cmp "$f" "$other/$f" || fail "two builds of one commit differ"; done
  echo "two builds: the same bytes"
fi
echo "$version: $(ls cmsjobs_*.tar.gz cmsjobs_*.zip | wc -l) archives, $(ls cmsjobs_*.deb cmsjobs_*.rpm cmsjobs_*.apk | wc -l) packages, $(wc -l <checksums.txt) sums, $(wc -l <"$work/linked") modules in the SBOMs"
