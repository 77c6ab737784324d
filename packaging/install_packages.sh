#!/bin/sh
# Install system packages of Debian or Ubuntu, without recommended ones. Services of these packages
# are not started, neither now nor at the next boot. Who may not install them gets their list, and
# exit status 2.
set -eu
POLICY=/usr/sbin/policy-rc.d # forbids packages to start services while they are installed

[ $# -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "These system packages are missing: $*" >&2
    echo "On Debian or Ubuntu: sudo sh packaging/install_packages.sh $*" >&2
    exit 2
fi

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q ' installed$'; }

new=""
for package in "$@"; do
    is_installed "$package" || new="$new $package"
done

# Keep the services of a package from starting at boot.
disable_services() {
    for file in $(dpkg -L "$1" | grep -E '/systemd/system/[^/]+\.(service|socket)$'); do
        find /etc/systemd/system -lname "*/${file##*/}" -delete 2>/dev/null || true
    done
    for file in $(dpkg -L "$1" | grep '^/etc/init\.d/.'); do
        update-rc.d "${file##*/}" disable
    done
}

finish() {
    [ -z "$created" ] || rm -f "$POLICY"
    for package in $new; do
        # The services of systemd itself are those of the computer.
        [ "$package" = systemd ] || ! is_installed "$package" || disable_services "$package"
    done
}

created=""
trap finish EXIT
trap 'exit 1' HUP INT TERM
if [ ! -e "$POLICY" ]; then
    created=yes
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod 755 "$POLICY"
fi
echo "Installing system packages: $*"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
