#!/bin/sh
# Fetches Extism's kit for AssemblyScript from npm and builds plugins with it into a folder: the kit's own example,
# and kit.ts. No package of Extism on npm contains a built plugin. The folder is for TestCorpus_npm.
set -eu
[ $# = 1 ] || { echo "usage: build.sh FOLDER" >&2; exit 2; }
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/kit.ts" "$work"
cd "$work"
timeout 300 npm install --ignore-scripts --no-audit --no-fund --no-package-lock
cp node_modules/@extism/as-pdk/example.ts node_modules/@extism/as-pdk/as_example.ts
timeout 120 npx asc node_modules/@extism/as-pdk/as_example.ts --outFile "$out/as_example.wasm" --use abort=node_modules/@extism/as-pdk/as_example/myAbort
timeout 120 npx asc kit.ts --outFile "$out/as_kit.wasm" --use abort=kit/myAbort
