#!/bin/sh
# Installs the pinned versions of real agents that live tests drive, from npm, into a cache folder.
# usage: install.sh [claude] [codex] [pi]
set -eu
dir=${MORTISE_AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/mortise-agents}
install() { # name package version
	target=$dir/$1-$3
	test -e "$target/node_modules/.bin/$1" && return
	mkdir -p "$target"
	npm install --no-audit --no-fund --no-save --prefix "$target" "$2@$3"
}
test $# -gt 0 || set -- claude codex pi
for name in "$@"; do
	case $name in
	claude) install claude @anthropic-ai/claude-code 2.1.197 ;;
	codex) install codex @openai/codex 0.169.0 ;;
	pi) install pi @earendil-works/pi-coding-agent 0.74.2 ;;
	*) echo "there is no agent $name; write claude, codex or pi" >&2; exit 2 ;;
	esac
done
