"""What there is besides the window: the tray, messages, the one instance, the end."""
