#!/bin/sh
# Installs the agents that the live tests run, in pinned versions, from npm into a folder. They are clients to test with; nothing of
# them is shipped. Claude Code and Codex have about 770 MB.
set -eu
[ $# = 1 ] || { echo "usage: build.sh FOLDER" >&2; exit 2; }
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cp "$here/package.json" "$1"
cd "$1"
timeout 900 npm install --ignore-scripts --no-audit --no-fund --no-package-lock
