#!/usr/bin/env bash
# Writes what Homebrew and Scoop install a release by, from its checksums: cmsjobs.rb, a
# formula for a tap, and cmsjobs.json, a manifest that Scoop takes by its address.
# Usage: deploy/release-recipes.sh DIST VERSION
set -euo pipefail
dist=$1 version=$2
home=https://github.com/cmsjobs/cmsjobs
from=$home/releases/download/v$version
about="Background jobs of a CMS, one binary beside it"
sum() {
  awk -v file="cmsjobs_${version}_$1" '$2 == file {print $1; found = 1} END {exit !found}' "$dist/checksums.txt" ||
    { echo "checksums.txt has no cmsjobs_${version}_$1" >&2; exit 1; }
}
# A sum that is missing ends this here: before anything is written.
declare -A sums
for file in linux_amd64.tar.gz linux_arm64.tar.gz darwin_amd64.tar.gz darwin_arm64.tar.gz windows_amd64.zip; do
  sums[$file]=$(sum "$file")
done
# part prints what the formula says of one system and processor.
part() {
  printf '    on_%s do\n      url "%s/cmsjobs_%s_%s.tar.gz"\n      sha256 "%s"\n    end\n' "$1" "$from" "$version" "$2" "${sums[$2.tar.gz]}"
}

formula=$(
  cat <<END
class Cmsjobs < Formula
  desc "$about"
  homepage "$home"
  version "$version"
  license "MIT"

  on_macos do
$(part arm darwin_arm64)
$(part intel darwin_amd64)
  end

  on_linux do
$(part arm linux_arm64)
$(part intel linux_amd64)
  end

  def install
    bin.install "cmsjobs"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/cmsjobs.bash" => "cmsjobs"
    zsh_completion.install "completions/cmsjobs.zsh" => "_cmsjobs"
    fish_completion.install "completions/cmsjobs.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/cmsjobs version")
  end
end
END
)
printf '%s\n' "$formula" >"$dist/cmsjobs.rb"
cat >"$dist/cmsjobs.json" <<END
{
    "version": "$version",
    "description": "$about",
    "homepage": "$home",
    "license": "MIT",
    "architecture": {
        "64bit": {
            "url": "$from/cmsjobs_${version}_windows_amd64.zip",
            "hash": "${sums[windows_amd64.zip]}"
        }
    },
    "bin": "cmsjobs.exe",
    "checkver": "github",
    "autoupdate": {
        "architecture": {
            "64bit": {
                "url": "$home/releases/download/v\$version/cmsjobs_\$version_windows_amd64.zip"
            }
        },
        "hash": {
            "url": "\$baseurl/checksums.txt"
        }
    }
}
END
echo "$dist/cmsjobs.rb and cmsjobs.json of $version"
