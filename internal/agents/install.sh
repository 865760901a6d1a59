#!/bin/sh
# Installs agents that live tests run, from npm, in the versions of package-lock.json, into a folder. They are clients to test with;
# nothing of them is shipped. Claude Code and Codex have about 770 MB. With "more" it installs Gemini CLI, Qwen Code, Copilot CLI and
# opencode instead, about 700 MB; one of these that the registry does not serve is named and left out: remove .installed to try again.
set -eu
[ $# = 1 ] || [ "$#${2-}" = 2more ] || { echo "usage: install.sh FOLDER [more]" >&2; exit 2; }
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
here=$(cd "$(dirname "$0")/${2-}" && pwd)
mkdir -p "$1"
cd "$1"
cmp -s "$here/package-lock.json" .installed && { cat .missing 2>/dev/null || :; exit; }
rm -rf node_modules .installed
: >.missing
cp "$here/package.json" "$here/package-lock.json" .
# npm install --no-save keeps to the lock as npm ci does, but takes one without the packages of other platforms, which not every registry serves.
timeout 900 npm install --no-save --ignore-scripts --no-audit --no-fund
missing=
for name in $(sed -n '/ependencies"/,/}/s/^ *"\(.*\)": *"[0-9].*/\1/p' package.json); do
	[ -d "node_modules/$name" ] || missing="$missing $name"
done
[ -z "$missing" ] || echo "not installed, their live tests are skipped:$missing" | tee .missing
cp package-lock.json .installed
