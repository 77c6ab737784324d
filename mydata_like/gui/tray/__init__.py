"""The tray icon, notifications, the single instance, shutdown and crash handling."""
