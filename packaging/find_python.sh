#!/bin/sh
# Print the Python to use: the system's if it is new enough and can make environments.
#
# Distributors build theirs with optimisation (PGO, LTO). Others, such as those of pyenv, are often
# built without: a copy of tiny files then takes a seventh more of processor time, plain Python code
# a third or more.
set -eu

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

for python in /usr/bin/python3 python3; do
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    if can_install || "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        break
    fi
done
echo "$python"
