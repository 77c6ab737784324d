"""The use cases: what the command line and the window ask of the program."""
