#!/bin/sh
# Renders each picture by us, by sharp and by disintegration/imaging, in one run:
#   cd FOLDER_WITH_NODE_MODULES/sharp && …/bench/run.sh PICTURE…
# TIMES is how often each is rendered (default 20).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bench=$(mktemp)
out=$(mktemp -d)
trap 'rm -rf "$bench" "$out"' EXIT
(cd "$here" && CGO_ENABLED=0 go build -tags nodynamic -o "$bench" .)
for picture in "$@"; do
	echo "== $picture"
	"$bench" ours "$picture" "${TIMES:-20}"
	node "$here/sharp.mjs" best "$picture" "${TIMES:-20}"
	node "$here/sharp.mjs" usual "$picture" "${TIMES:-20}"
	case $picture in *.webp) ;; *) "$bench" imaging "$picture" $(( (${TIMES:-20} + 2) / 3 )) ;; esac
	case $picture in *.jpg)
		"$bench" ours "$picture" 1 "$out" >/dev/null
		BENCH_OUT=$out node "$here/sharp.mjs" usual "$picture" 1 >/dev/null
		"$bench" quality "$picture" "$out" jpg ;;
	esac
done
