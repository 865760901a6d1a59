#!/bin/sh
# Builds hook.wasm and work.wasm from hook.c and work.c with clang-19 and wasm-ld-19 (packages clang-19 and
# lld-19). With --check it builds elsewhere and compares byte for byte. Compiling
# and linking are two steps, because clang runs wasm-opt when it finds one.
set -eu
cd "$(dirname "$0")"
for tool in clang-19 wasm-ld-19; do
	command -v "$tool" >/dev/null || { echo "$tool is missing (Debian: apt-get install clang-19 lld-19)" >&2; exit 1; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for name in hook work; do
	clang-19 --target=wasm32-unknown-unknown -std=c17 -O2 -msimd128 -ffreestanding -fno-builtin -mbulk-memory -Wall -Wextra -Werror -c -o "$tmp/$name.o" $name.c
	wasm-ld-19 --no-entry --strip-all --stack-first -z stack-size=4096 -o "$tmp/$name.wasm" "$tmp/$name.o"
	if [ "${1:-}" != --check ]; then
		cp "$tmp/$name.wasm" $name.wasm
	elif ! cmp -s "$tmp/$name.wasm" $name.wasm; then
		echo "host/testdata/bench/c/$name.wasm is not what $name.c builds" >&2
		exit 1
	fi
	echo "host/testdata/bench/c/$name.wasm is built: $(wc -c <$name.wasm) bytes"
done
