#!/bin/sh
# What the tests use that is no Python or npm package. Installed where that can be done unasked
# (root on Debian); elsewhere it says what is missing, and the tests that need it are skipped.
set -eu

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing prometheus, which the tests of /metrics read with ..."
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null; then
        exit 0
    fi
    echo "prometheus could not be installed: the tests that need it will be skipped." >&2
else
    echo "prometheus is not on the PATH, and installing it needs root (Debian: apt install prometheus;" >&2
    echo "macOS: brew install prometheus). The tests that need it will be skipped." >&2
fi
# Where a change is judged, a skipped test would be a hole nobody sees.
[ "${CI:-}" != true ]
