#!/bin/sh
# Add to .venv what the tests need, and install or list missing system packages, on Linux including
# those of the tools given as arguments.
set -eu

missing=""
need() { missing="$missing $1"; }

has_library() {
    for folder in /lib /usr/lib /lib64 /usr/lib64 /usr/local/lib; do
        [ -d "$folder" ] || continue
        [ -n "$(find "$folder" -maxdepth 2 -name "$1*" -print -quit 2>/dev/null)" ] && return 0
    done
    return 1
}

if [ "$(uname -s)" = Linux ]; then
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || need "$tool"
    done
    [ -x /usr/sbin/sshd ] || command -v sshd >/dev/null 2>&1 || need openssh-server
    command -v scp >/dev/null 2>&1 || need openssh-client
    # Libraries that Qt loads for any window, even an offscreen one.
    has_library libGL.so.1 || need libgl1
    has_library libEGL.so.1 || need libegl1
    has_library libxkbcommon.so.0 || need libxkbcommon0
    has_library libglib-2.0.so.0 || need libglib2.0-0
    has_library libfontconfig.so.1 || need libfontconfig1
    has_library libdbus-1.so.3 || need libdbus-1-3
    # Libraries that it loads on a display, and the private display with a tray for tests.
    has_library libxkbcommon-x11.so.0 || need libxkbcommon-x11-0
    has_library libxcb-cursor.so.0 || need libxcb-cursor0
    has_library libxcb-icccm.so.4 || need libxcb-icccm4
    has_library libxcb-keysyms.so.1 || need libxcb-keysyms1
    has_library libxcb-shape.so.0 || need libxcb-shape0
    command -v Xvfb >/dev/null 2>&1 || need xvfb
    command -v xauth >/dev/null 2>&1 || need xauth
    command -v xwininfo >/dev/null 2>&1 || need x11-utils
    command -v xdotool >/dev/null 2>&1 || need xdotool
    command -v openbox >/dev/null 2>&1 || need openbox
    command -v trayer >/dev/null 2>&1 || need trayer
    # Other tar programs, which must be able to read our streams.
    command -v bsdtar >/dev/null 2>&1 || need libarchive-tools
    command -v busybox >/dev/null 2>&1 || need busybox
    # Validators of desktop files, services and AppStream metadata.
    command -v desktop-file-validate >/dev/null 2>&1 || need desktop-file-utils
    command -v systemd-analyze >/dev/null 2>&1 || need systemd
    command -v appstreamcli >/dev/null 2>&1 || need appstream
    # shellcheck disable=SC2086
    sh packaging/install_packages.sh $missing || [ $? -eq 2 ]
fi

.venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
.venv/bin/python -m pip install --quiet --disable-pip-version-check --group dev
