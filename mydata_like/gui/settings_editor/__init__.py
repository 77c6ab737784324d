"""The settings dialog, built from the one list of settings."""
