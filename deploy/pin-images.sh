#!/usr/bin/env bash
# Pins the images that the project builds on or starts by their digests, so that
# a tag that moves, or a registry that was broken into, changes nothing.
# It asks the registries (by crane, skopeo or docker buildx) and rewrites
# deploy/Dockerfile and docker-compose.yml: NAME:TAG becomes NAME:TAG@sha256:….
# Pinned images get the digest that their tag has now.
# Usage: deploy/pin-images.sh [--check] [FOLDER]
#   --check   change nothing; fail where an image is not pinned
set -euo pipefail
check=
if [ "${1:-}" = --check ]; then check=1; shift; fi
cd "${1:-$(dirname "$0")/..}"
files="deploy/Dockerfile docker-compose.yml"

# images prints each image of a file once, without its digest. Stages and
# scratch are none; services that are built have none.
images() {
  sed -nE -e 's/^FROM +(--[a-z]+=[^ ]+ +)*([^ ]+).*/\2/p' -e 's/^ +image: +"?([^" ]+)"?.*/\1/p' "$1" | grep -v '^scratch$' | sort -u
}

resolve() {
  if command -v crane >/dev/null; then crane digest "$1"
  elif command -v skopeo >/dev/null; then skopeo inspect --format '{{.Digest}}' "docker://$1"
  elif command -v docker >/dev/null; then docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"
  else echo "pin-images needs crane, skopeo or docker buildx to ask the registries" >&2; return 1
  fi
}

bad=0
for file in $files; do
  for image in $(images "$file"); do
    if [ -n "$check" ]; then
      [[ $image =~ @sha256:[0-9a-f]{64}$ ]] || { echo "$file: $image is not pinned by its digest: run make pin-images" >&2; bad=1; }
      continue
    fi
    name=${image%@*}
    digest=$(resolve "$name")
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "$name: the registry answers \"$digest\", no digest" >&2; exit 1; }
    escaped=$(printf '%s' "$image" | sed 's/[.[\*^$/]/\\&/g')
    sed -i -E "s#(^FROM .*|^ +image: +\"?)$escaped(\"?( |\$))#\1$name@$digest\2#" "$file"
    echo "$file: $name@$digest"
  done
done
exit $bad
