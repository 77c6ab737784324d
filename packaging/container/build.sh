#!/bin/sh
# Build the container image of the package in dist, and save it there: `make container`, as root.
# Isolation by chroot and storage by vfs work inside other containers too.
set -eu
work=build/container
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
package=$(ls dist/mydata-like_*_*.deb)
version=$(basename "$package" | cut -d_ -f2)
rm -rf "$work"
mkdir -p "$work"
[ -e "build/base-$suite.tar" ] || {
    debootstrap --variant=minbase "$suite" "$work/root" >"$work/debootstrap.log"
    tar -C "$work/root" -cf "build/base-$suite.tar" . && rm -rf "$work/root"
}
mkdir "$work/root"
tar -C "$work/root" -xf "build/base-$suite.tar"
# The command line needs no libraries of the window, so dpkg does not install the package, and of what
# it depends on only libexpat1, for Python's library, is not on the least system.
dpkg -x "$package" "$work/root"
chroot "$work/root" sh -c 'apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        ca-certificates libexpat1 openssh-client >/dev/null &&
    useradd --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin mydata-like &&
    cd /var && rm -rf lib/apt/lists/* cache/apt cache/ldconfig log/* &&
    cd /usr/share && rm -rf doc/* man/*'
tar --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" -C "$work/root" -cf "$work/root.tar" .
rm -rf "$work/root"
cp packaging/container/Containerfile "$work"
buildah bud --isolation chroot --storage-driver vfs --timestamp "${SOURCE_DATE_EPOCH:-0}" \
    -t "mydata-like:$version" "$work"
rm -f "dist/mydata-like-$version-container.tar"
buildah push --storage-driver vfs "mydata-like:$version" \
    "oci-archive:dist/mydata-like-$version-container.tar:mydata-like:$version"
rm -rf "$work"
