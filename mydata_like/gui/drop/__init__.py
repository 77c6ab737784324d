"""Folders and files that are dropped on the window: what they would become, and their way in."""
