"""An sshd that asks for a password or a one-time code, by PAM, and a terminal with a user."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sshd_fixture import script, sshd_with

COMPILER = shutil.which("gcc") or shutil.which("clang") or ""
needs_pam = pytest.mark.skipif(
    os.name == "nt" or not COMPILER or not any(Path("/usr/lib").glob("**/pam_exec.so")),
    reason="needs a C compiler and PAM",
)
# sshd reads /etc/pam.d/sshd; this lets it read a folder of the test instead.
_REDIRECT = """
#define _GNU_SOURCE
#include <dlfcn.h>
int pam_start(const char *service, const char *user, const void *talk, void **handle) {
    int (*start)(const char *, const char *, const void *, const char *, void **) =
        dlsym(RTLD_NEXT, "pam_start_confdir");
    return start("sshd", user, talk, FOLDER, handle);
}
"""
_RULES = """\
auth required pam_exec.so expose_authtok quiet {check}
auth required pam_permit.so
account required pam_permit.so
session required pam_permit.so
"""
# The first word of the file is the next code; the last one stays valid.
_CHECK = """\
typed=$(tr -d '\\0'); read first rest < {codes}
[ "$typed" = "$first" ] || exit 1
[ -z "$rest" ] || echo "$rest" > {codes}
"""


@contextmanager
def asking_sshd(directory, codes, *options):
    """Run a server that accepts one of the words of `codes` after the other, the last for ever."""
    folder = directory / "pam"
    folder.mkdir()
    (folder / "codes").write_text(f"{codes}\n")
    check = script(folder / "check", _CHECK.format(codes=folder / "codes"))
    (folder / "sshd").write_text(_RULES.format(check=check))
    library, source = folder / "redirect.so", folder / "redirect.c"
    source.write_text(_REDIRECT)
    words = [COMPILER, "-shared", "-fPIC", f'-DFOLDER="{folder}"', "-o", library, source, "-ldl"]
    subprocess.run(words, check=True)
    os.environ["LD_PRELOAD"] = str(library)
    try:
        with sshd_with(directory, "UsePAM yes", "PermitRootLogin yes", *options) as sshd:
            del os.environ["LD_PRELOAD"]
            yield sshd
    finally:
        os.environ.pop("LD_PRELOAD", None)


def run_on_terminal(words, environment, answers):
    """Run a program on a terminal of its own; return its exit status and all that it printed.

    Each of the `answers` is a text to wait for and what the user types then.
    """
    import pty  # not on Windows

    process, terminal = pty.fork()
    if not process:
        os.execvpe(words[0], words, environment)
    shown, waiting = "", [*answers]
    try:
        while True:
            if waiting and waiting[0][0] in shown.rpartition("\0")[2]:
                os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
                shown += "\0"
            shown += os.read(terminal, 65_536).decode("utf-8", "replace")
    except OSError:  # the program has ended
        pass
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.replace("\0", "")
