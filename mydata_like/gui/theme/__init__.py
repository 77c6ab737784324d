"""The appearance of the window: colours, icons, texts and common widgets."""
