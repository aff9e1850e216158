#!/bin/sh
# What the tests use that is no Python or npm package. Installed where that can be done unasked
# (root on Debian); elsewhere it says what is missing, and the tests that need it are skipped.
set -eu

# A program, and the Debian package it comes in.
WANTED="prometheus:prometheus promtool:prometheus nginx:nginx-light systemd-analyze:systemd
openssl:openssl chromium:chromium"
PATH=$PATH:/usr/sbin:/sbin # where nginx is, and where not everybody looks

programs="" packages=""
for each in $WANTED; do
    command -v "${each%:*}" >/dev/null && continue
    programs="$programs ${each%:*}" packages="$packages ${each#*:}"
done
[ "$packages" ] || exit 0

# Tests start these programs themselves: nothing is to run, or to hold a port, as a service.
POLICY=/usr/sbin/policy-rc.d
without_services() {
    [ -e "$POLICY" ] && return
    trap 'rm -f "$POLICY"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod +x "$POLICY"
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing what some tests run:$programs ..."
    export DEBIAN_FRONTEND=noninteractive
    without_services
    # shellcheck disable=SC2086 # several words
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages >/dev/null; then
        exit 0
    fi
    echo "They could not be installed: the tests that need them will be skipped." >&2
else
    echo "Not on the PATH:$programs. Installing them needs root (Debian: apt install$packages)." >&2
    echo "The tests that need them will be skipped." >&2
fi
# Where a change is judged, a skipped test would be a hole nobody sees.
[ "${CI:-}" != true ]
