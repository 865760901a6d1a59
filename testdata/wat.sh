#!/bin/sh
# Builds every .wat of the repository with wat2wasm (package wabt) into the
# .wasm beside it. With --check it builds elsewhere and compares byte for byte.
set -eu
cd "$(dirname "$0")/.."
command -v wat2wasm >/dev/null || { echo "wat2wasm is missing (Debian: apt-get install wabt)" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
count=0
for wat in $(find . -name '*.wat' -not -path './.git/*' | sort); do
	wasm=${wat%.wat}.wasm
	check=
	case $wat in *invalid_code*) check=--no-check ;; esac
	# Function names are kept: tests look at stack traces.
	wat2wasm --debug-names $check --enable-tail-call --enable-threads -o "$tmp/out.wasm" "$wat"
	if [ "${1:-}" != --check ]; then
		cp "$tmp/out.wasm" "$wasm"
	elif ! cmp -s "$tmp/out.wasm" "$wasm"; then
		echo "$wasm is not what $wat builds" >&2
		bad=1
	fi
	count=$((count + 1))
done
[ "$count" -gt 30 ] || { echo "only $count .wat files were found" >&2; bad=1; }
for dir in host/testdata internal/cli/testdata; do
	for wasm in "$dir"/*.wasm; do
		[ -f "${wasm%.wasm}.wat" ] || { echo "$wasm has no source" >&2; bad=1; }
	done
done
[ "$bad" = 0 ] && echo "$count modules in text format are built as committed"
exit $bad
