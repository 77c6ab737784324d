#!/bin/sh
# Runs before the package is removed, not before an upgrade: names the services that users and
# administrators have made by `mydata-like watch --install`. They are not the package's to remove.
case "$1" in remove | 0) ;; *) exit 0 ;; esac
{
    echo /etc
    getent passwd | cut -d: -f6
} | sort -u | while read -r home; do
    for folder in "$home/systemd/system" "$home/.config/systemd/user"; do
        service="$folder/mydata-like.service"
        if [ -e "$service" ] || [ -L "$service" ]; then
            echo "mydata-like: $service stays, and can no longer start. As its owner:" >&2
            echo "  systemctl --user disable --now mydata-like; rm $service" |
                if [ "$home" = /etc ]; then sed 's/ --user//'; else cat; fi >&2
        fi
    done
done
exit 0
