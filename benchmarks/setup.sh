#!/bin/sh
# Install the peers that the benchmarks compare with, or name those that are missing.
set -eu

missing=""
need() { missing="$missing $1"; }

[ -x /usr/sbin/sshd ] || command -v sshd >/dev/null 2>&1 || need openssh-server
command -v ssh >/dev/null 2>&1 && command -v scp >/dev/null 2>&1 && command -v sftp >/dev/null 2>&1 || need openssh-client
command -v rsync >/dev/null 2>&1 || need rsync
command -v lftp >/dev/null 2>&1 || need lftp
command -v rclone >/dev/null 2>&1 || need rclone

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing peers of the benchmarks:$missing"
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "These peers are missing and will be skipped:$missing" >&2
    echo "On Debian or Ubuntu: sudo apt-get install$missing" >&2
fi
