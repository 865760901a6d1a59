#!/bin/sh
# Installs the Agent Client Protocol's own client, @agentclientprotocol/sdk, from npm into a folder, for TestACP_client.
set -eu
[ $# = 1 ] || { echo "usage: build.sh FOLDER" >&2; exit 2; }
command -v npm >/dev/null || { echo "npm is missing" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cp "$here/package.json" "$here/package-lock.json" "$1"
cd "$1"
timeout 300 npm ci --ignore-scripts --no-audit --no-fund
