#!/usr/bin/env bash
# Makes the packages of .goreleaser.yaml with nfpm alone, for this machine, and looks at
# what an installer does with them: the .deb is installed into an empty root and removed
# again, the others are read. The recipes for Homebrew and Scoop are made and tried with
# archives that all hold this machine's program. Needs dpkg, ruby, jq, unzip and zip.
# Usage: deploy/check/packages.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 version=0.0.1 arch=$(go env GOARCH)
work=$(mktemp -d); trap 'rm -rf "$work" release' EXIT
fail() { echo "$*" >&2; exit 1; }
deploy/release-files.sh release "$version"
CGO_ENABLED=0 GOOS=linux go build -tags nodynamic -trimpath -ldflags "-s -w -X main.version=$version" -o "$work/cmsjobs" ./cmd/cmsjobs

# The first package of .goreleaser.yaml, without what only goreleaser reads, and with what
# it adds: the names, and the program.
{
  echo "name: cmsjobs
arch: $arch
platform: linux
version: $version"
  sed -n '/^nfpms:$/,/^changelog:$/p' .goreleaser.yaml | sed -E '1d;$d;s/^  - /    /;s/^    //;/^(package_name|formats|bindir|mtime):/d'
  echo "  - {src: $work/cmsjobs, dst: /usr/bin/cmsjobs, file_info: {mode: 0755}}"
} >"$work/nfpm.yaml"
formats=$(sed -n 's/^    formats: \[\(.*deb.*\)\]$/\1/p' .goreleaser.yaml | tr -d ,)
for format in $formats; do
  go run "$nfpm" package --config "$work/nfpm.yaml" --packager "$format" --target "$work/cmsjobs.$format" >/dev/null
done
wanted="usr/bin/cmsjobs lib/systemd/system/cmsjobs.service usr/share/man/man1/cmsjobs.1
  usr/share/bash-completion/completions/cmsjobs usr/share/zsh/vendor-completions/_cmsjobs
  usr/share/fish/vendor_completions.d/cmsjobs.fish usr/share/doc/cmsjobs/copyright"

root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"; : >"$root/var/lib/dpkg/status"
dpkg --root="$root" --log=/dev/null --force-not-root --install "$work/cmsjobs.deb" >/dev/null
for f in $wanted; do [ -s "$root/$f" ] || fail "the .deb installs no $f"; done
"$root/usr/bin/cmsjobs" version | grep -q "$version" || fail "the .deb installs another version"
program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$root/lib/systemd/system/cmsjobs.service")
[ -x "$root$program" ] || fail "the unit starts $program, which the .deb does not install"
dpkg --root="$root" --log=/dev/null --force-not-root --purge cmsjobs >/dev/null 2>&1
left=$(find "$root" -path "$root/var/lib/dpkg" -prune -o -type f -print); [ -z "$left" ] || fail "after the removal there is $left"

# An .apk is three archives of tar with gzip in a row: signature, control, data.
tar --ignore-zeros -tzf "$work/cmsjobs.apk" 2>/dev/null >"$work/apk" || fail "the .apk cannot be read"
for f in $wanted; do grep -qx "$f" "$work/apk" || fail "the .apk holds no $f"; done
! grep -qE '^\.(pre|post)-' "$work/apk" || fail "the .apk runs a script"
go run -C deploy/check ./rpm "$work/cmsjobs.rpm" >"$work/rpm" || fail "the .rpm cannot be read"
for f in $wanted; do grep -qx "/$f" "$work/rpm" || fail "the .rpm holds no $f"; done
echo "packages of $version: $formats: $(wc -w <<<"$wanted") files wanted are in each, the .deb was installed and removed"

# The files of .goreleaser.yaml's archives, by its own list.
mkdir -p "$work/archive" "$work/dist"; cp "$work/cmsjobs" "$work/archive/"
sed -n 's/^      - {src: \([^,]*\)\(, dst: \([a-z]*\)\)\?, info: .*/\1 \3/p' .goreleaser.yaml | while read -r from to; do
  # shellcheck disable=SC2086 # a pattern
  for f in $from; do install -D -m 0644 "$f" "$work/archive/${to:-$(dirname "$f")}/$(basename "$f")"; done
done
for system in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64; do
  tar -czf "$work/dist/cmsjobs_${version}_$system.tar.gz" -C "$work/archive" .
done
mv "$work/archive/cmsjobs" "$work/archive/cmsjobs.exe"
(cd "$work/archive" && zip -qr "$work/dist/cmsjobs_${version}_windows_amd64.zip" .)
(cd "$work/dist" && sha256sum cmsjobs_* >checksums.txt)
deploy/release-recipes.sh "$work/dist" "$version" >/dev/null
deploy/check/recipes.sh "$work/dist" "$version"
if command -v shellcheck >/dev/null; then shellcheck deploy/install.sh; else echo "deploy/install.sh: no shellcheck here, only its tests"; fi
