"""The private sshd of a run, and facts about the machine and the programs."""
