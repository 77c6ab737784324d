"""A real ssh-agent for tests, and keys that it holds."""

import subprocess
from contextlib import contextmanager

from mydata_like.ssh.keys import load_key


@contextmanager
def running_agent(folder):
    """Run an ssh-agent; yield the path of its socket."""
    path = folder / "s"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    process.stdout.readline()  # it listens before it says so
    try:
        yield str(path)
    finally:
        process.kill()
        process.communicate()


def ssh_add(agent, *words):
    """Change what keys an agent holds."""
    subprocess.run(["ssh-add", "-q", *words], env={"SSH_AUTH_SOCK": agent}, check=True)


def move_into_agent(key_file, agent, *words):
    """Let an agent hold a key; return the file of its public half, the only one that is left."""
    ssh_add(agent, *words, key_file)
    public = key_file.with_name("public")
    public.write_text(load_key(key_file).public.line("held by the agent") + "\n")
    key_file.unlink()
    return public
