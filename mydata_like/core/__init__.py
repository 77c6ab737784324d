"""Values, events, errors and ports; standard library only, no I/O, no threads."""
