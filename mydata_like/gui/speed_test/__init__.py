"""The speed test in the window: its child process, its reports, its bars and words."""
