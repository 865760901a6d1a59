#!/bin/sh
# Installs agents that live tests run, from npm, in the versions of package-lock.json, into a folder. They are clients to test with;
# nothing of them is shipped. Claude Code and Codex have about 770 MB. With "more" it installs Gemini CLI, Qwen Code, Copilot CLI and
# opencode instead, about 700 MB.
set -eu
[ $# = 1 ] || [ "$#${2-}" = 2more ] || { echo "usage: install.sh FOLDER [more]" >&2; exit 2; }
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
here=$(cd "$(dirname "$0")/${2-}" && pwd)
mkdir -p "$1"
cd "$1"
# npm ci begins by deleting everything, so it runs only where the versions differ.
cmp -s "$here/package-lock.json" .installed && exit
cp "$here/package.json" "$here/package-lock.json" .
timeout 900 npm ci --ignore-scripts --no-audit --no-fund
cp package-lock.json .installed
