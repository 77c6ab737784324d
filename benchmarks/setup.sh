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

# shellcheck disable=SC2086
sh packaging/install_packages.sh $missing || [ $? -eq 2 ]
