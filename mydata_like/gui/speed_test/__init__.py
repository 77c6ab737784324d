"""The speed test in the window: its child process, its reports, its chart and its texts."""
