"""A real ssh-agent for tests, and its keys."""

import subprocess
from contextlib import contextmanager

from mydata_like.ssh.keys import load_key


@contextmanager
def running_agent(folder):
    """Run an ssh-agent; yield the path of its socket."""
    path = folder / "s"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE)
    process.stdout.readline()  # it listens before it prints this
    try:
        yield str(path)
    finally:
        process.kill()
        process.communicate()


def ssh_add(agent, *words):
    """Change the keys of an agent."""
    subprocess.run(["ssh-add", "-q", *words], env={"SSH_AUTH_SOCK": agent}, check=True)


def move_into_agent(key_file, agent, *words):
    """Move a key into an agent; return the file of its public key, and delete the private one."""
    ssh_add(agent, *words, key_file)
    public = key_file.with_name("public")
    public.write_text(load_key(key_file).public.line("in the agent") + "\n")
    key_file.unlink()
    return public
