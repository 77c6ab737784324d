"""The use cases of the command line and the window."""
