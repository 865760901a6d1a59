#!/bin/sh
# Builds every .wat here with wat2wasm (package wabt).
# With --check it builds into a temporary folder and compares byte for byte.
set -eu
cd "$(dirname "$0")"
command -v wat2wasm >/dev/null || { echo "wat2wasm is missing: apt-get install wabt" >&2; exit 1; }
out=.
if [ "${1:-}" = --check ]; then
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
fi
bad=0
for wat in *.wat; do
	wasm=${wat%.wat}.wasm
	check=
	[ "$wat" = invalid_code.wat ] && check=--no-check
	[ "$wat" = stubborn.wat ] && check=--enable-tail-call
	# Function names are kept: the tests look at stack traces.
	wat2wasm --debug-names $check -o "$out/$wasm" "$wat"
	if [ "$out" != . ] && ! cmp -s "$out/$wasm" "$wasm"; then
		echo "$wasm is not what $wat builds" >&2
		bad=1
	fi
done
for wasm in *.wasm; do
	[ -f "${wasm%.wasm}.wat" ] || { echo "$wasm has no source" >&2; bad=1; }
done
exit $bad
