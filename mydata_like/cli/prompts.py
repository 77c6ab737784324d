"""Questions to the user on a terminal: host keys, passphrases, passwords and codes."""

import getpass
import sys

import typer

from mydata_like.app.host_login import Prompts


def find_prompts() -> Prompts | None:
    """Return how to ask the user, or None where there is no terminal."""
    return Prompts(_confirm_host_key, _ask) if sys.stdin.isatty() else None


def _confirm_host_key(host: str, fingerprint: str, kind: str) -> bool:
    shown = f"The key of {host} is not known. Its fingerprint is {fingerprint} ({kind})."
    return typer.confirm(f"{shown}\nIs this its key?", err=True)


def _ask(question: str, *, shown: bool) -> str:
    """Return what the user types; empty at the end of the input (Ctrl+D)."""
    if shown:
        typer.echo(question, err=True, nl=False)
        return sys.stdin.readline().rstrip("\n")
    try:
        return getpass.getpass(question)
    except EOFError:
        return ""
