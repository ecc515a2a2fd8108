#!/bin/sh
# Restores a backup of this repository without cmsjobs. It needs sh, zstd, the usual
# tools of a Unix system, and age for what is encrypted.
#
#   sh restore.sh                      lists the backups
#   sh restore.sh BACKUP               lists the files of a backup
#   sh restore.sh BACKUP DIR           restores all files into the new folder DIR
#   sh restore.sh BACKUP DIR NAME...   restores these files and folders (LABEL/PATH)
#
# BACKUP is "latest", or the beginning of a backup's name.
# AGE_IDENTITY=FILE names the file with the age identity.
# The files of a bucket must be copied into a local folder first.
set -eu
LC_ALL=C
export LC_ALL
umask 022
tab=$(printf '\t')
repository=$(dirname -- "$0")
case $repository in -*) repository=./$repository ;; esac

fail() {
	printf 'restore.sh: %s\n' "$*" >&2
	exit 1
}

# object NAME: sets file to the object, decrypted.
kept=0
object() {
	case $1 in '' | *[!0-9a-z.-]*) fail "$1 is no name of an object" ;; esac
	rest=${1#?}
	file=$repository/objects/${1%"$rest"}/$1
	[ -f "$file" ] || fail "the object $file is missing"
	case $1 in
	*.age)
		if [ ! -f "$temp/$1" ]; then
			if [ "$kept" -ge 8 ]; then
				rm -f "$temp"/*.age
				kept=0
			fi
			[ -n "${AGE_IDENTITY:-}" ] || fail "the backup is encrypted: set AGE_IDENTITY to the file with the age identity"
			age -d -i "$AGE_IDENTITY" -o "$temp/$1" "$file" </dev/null || fail "$file does not open"
			kept=$((kept + 1))
		fi
		file=$temp/$1
		;;
	esac
}

# number TEXT: is it one? A shell would run what else stands in an expression.
number() {
	case $1 in '' | *[!0-9]*) fail "$1 is no number" ;; esac
}

# cut_out FILE OFFSET STORED
cut_out() {
	if [ "$2" -eq 0 ]; then
		head -c "$3" "$1"
	else
		tail -c "+$(($2 + 1))" "$1" | head -c "$3"
	fi
}

# piece OBJECT OFFSET STORED CODING: writes the content of a piece.
piece() {
	number "$2"
	number "$3"
	object "$1"
	case $4 in
	zst) cut_out "$file" "$2" "$3" | zstd -dcq ;;
	raw) cut_out "$file" "$2" "$3" ;;
	*) fail "a piece is packed by $4, which is not known" ;;
	esac
}

found=
for record in "$repository"/backups/*.zst; do
	[ -f "$record" ] || fail "there is no backup in $repository"
	name=${record##*/}
	if [ $# -eq 0 ]; then
		zstd -dcq "$record" | while IFS=$tab read -r type a b; do
			case $type in
			status) status=$a ;;
			files) files=$a ;;
			bytes)
				printf '%s  %s, %s files, %s bytes\n' "${name%.zst}" "$status" "$files" "$a"
				break
				;;
			esac
		done
	elif [ "$1" = latest ]; then
		found=$record
	else
		case $name in "$1"*)
			[ -z "$found" ] || fail "several backups begin with $1: write more of the name"
			found=$record
			;;
		esac
	fi
done
[ $# -gt 0 ] || exit 0
[ -n "$found" ] || fail "there is no backup $1"
shift
dir=${1:-}
if [ $# -gt 0 ]; then
	shift
	case $dir in -*) dir=./$dir ;; esac
	mkdir -p "$dir"
	[ -z "$(ls -A "$dir")" ] || fail "$dir is not empty"
fi

temp=${TMPDIR:-/tmp}/cmsjobs-restore.$$
mkdir -m 700 "$temp"
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM

checks=
if command -v sha256sum >/dev/null; then
	checks=yes
	expected=${found##*-}
	[ "$(sha256sum <"$found" | head -c 64)" = "${expected%.zst}" ] || fail "$found is damaged"
fi

# The record says where the pieces of the manifest are.
zstd -dcq "$found" >"$temp/record"
whole=
: >"$temp/manifest"
while IFS=$tab read -r type a b c d e; do
	case $type in
	cmsjobs-backup) [ "$a" = 1 ] || fail "the format $a is not known to this script" ;;
	files)
		number "$a"
		files=$a
		;;
	manifest) piece "$a" "$b" "$c" "$d" >>"$temp/manifest" ;;
	end) whole=yes ;;
	esac
done <"$temp/record"
[ -n "$whole" ] || fail "$found breaks off"

# decode NAME: sets path to the name of a file.
decode() {
	case $1 in
	*\\*)
		path=$(printf '%b.' "$1")
		path=${path%.}
		;;
	*) path=$1 ;;
	esac
}

# wanted: is path one of the names, or below one?
wanted() {
	[ $# -gt 0 ] || return 0
	for name; do
		case $path in "$name" | "${name%/}"/*) return 0 ;; esac
	done
	return 1
}

# finish completes the file that the lines before described.
count=0
out=
: >"$temp/sums"
finish() {
	[ -n "$out" ] || return 0
	[ "$mode" = 0644 ] || chmod "$mode" "$out"
	touch -d "$modified" "$out" 2>/dev/null || :
	case $out in
	*\\* | *'
'*) [ -z "$checks" ] || [ "$(sha256sum <"$out" | head -c 64)" = "$sum" ] || fail "$out is damaged" ;;
	*) printf '%s  %s\n' "$sum" "$out" >>"$temp/sums" ;;
	esac
	count=$((count + 1))
	out=
}

made=
while IFS=$tab read -r type a b c d e f; do
	case $type in
	f)
		finish
		decode "$f"
		if [ -z "$dir" ]; then
			printf '%s\t%s\t%s\n' "$a" "$c" "$f"
			continue
		fi
		wanted "$@" || continue
		case /$path/ in *//* | */./* | */../*) fail "the path $path leaves the folder" ;; esac
		case $b in [0-7][0-7][0-7][0-7]) ;; *) fail "$b are no permissions" ;; esac
		mode=$b modified=$c sum=$e out=$dir/$path
		if [ "${out%/*}" != "$made" ]; then
			made=${out%/*}
			mkdir -p "$made"
		fi
		: >"$out"
		;;
	p) [ -z "$out" ] || piece "$a" "$b" "$c" "$d" >>"$out" ;;
	esac
done <"$temp/manifest"
finish
[ -n "$dir" ] || exit 0

if [ -z "$checks" ]; then
	echo "restore.sh: there is no sha256sum: the files are not checked" >&2
elif sha256sum -c "$temp/sums" 2>/dev/null | grep -v ': OK$'; then
	fail "these files are damaged"
fi
[ $# -gt 0 ] || [ "$count" -eq "$files" ] || fail "$count of $files files were restored"
[ "$count" -gt 0 ] || [ $# -eq 0 ] || fail "the backup has none of these files"
echo "$count files were restored into $dir"
