"""Compare the speed of mydata-like with scp, tar over ssh, rsync and rclone: docs/measurements.md.

The gate does not run them.
"""
