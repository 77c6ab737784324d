#!/bin/sh
# Create .venv with the program. It needs Python with venv, and nothing else of the system.
set -eu
PYTHON="${PYTHON:-python3}"

has_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }

if ! has_venv; then
    # Debian has this module in a package of its own, for each version of Python.
    sh packaging/install_packages.sh "$(basename "$PYTHON")-venv"
fi

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "mydata-like needs Python 3.11 or newer; this is $("$PYTHON" --version)." >&2
    echo "Choose another one: make PYTHON=python3.12 ..." >&2
    exit 1
}

[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[s3]'
# Makes the first start fast, also if Python may not write its cache later.
.venv/bin/python -m compileall -q mydata_like
