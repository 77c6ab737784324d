"""The benchmarks compare with programs of POSIX systems, and run on these only."""

import os

collect_ignore_glob = ["test_*.py"] if os.name == "nt" else []
