#!/bin/sh
# For one user, without rights of an administrator: a link in ~/.local/bin, and an entry with an icon
# in the desktop's menu, for the program in the folder of this script. `install.sh --remove` removes
# them. Run it again after the folder was moved.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data="${XDG_DATA_HOME:-$HOME/.local/share}"
entry="$data/applications/mydata-like.desktop"
command="$HOME/.local/bin/mydata-like"

if [ "${1:-}" = --remove ]; then
    rm -f "$command" "$entry" "$data"/icons/hicolor/*/apps/mydata-like.*
    exit
fi
"$here/mydata-like" --version >/dev/null || {
    echo "It needs glibc 2.34 or newer and libexpat (package libexpat1, or expat); see above." >&2
    exit 1
}
mkdir -p "$data/applications" "$data/icons" "$HOME/.local/bin"
ln -sfn "$here/mydata-like" "$command"
cp -R "$here/share/icons/." "$data/icons/"
# A path in Exec is quoted: `"`, `` ` ``, `$` and `\` with backslashes, which are doubled in a string.
path=$(printf %s "$here/mydata-like" | sed -e 's/[\\"`$]/\\\\&/g' -e 's/%/%%/g')
while IFS= read -r line; do
    case "$line" in
    Exec=mydata-like*) printf 'Exec="%s"%s\n' "$path" "${line#Exec=mydata-like}" ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$here/share/applications/mydata-like.desktop" >"$entry"
case ":$PATH:" in
*":$HOME/.local/bin:"*) ;;
*) echo "$HOME/.local/bin is not in PATH: start $command, or log in again." ;;
esac
