"""The window and what belongs to it: the only room that knows Qt."""
