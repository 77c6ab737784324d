"""Folders and files that are dropped on the window: their destinations and their upload."""
