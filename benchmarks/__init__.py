"""Compare the speed of mydata-like with scp, tar over ssh, rsync and rclone: docs/measurements.md.

Nothing in here is ever part of the gate.
"""
