"""How fast mydata-like is beside scp, tar over ssh, rsync and rclone: docs/performance.md.

Nothing in here is ever part of the gate.
"""
