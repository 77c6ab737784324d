"""How the window looks: colours, icons, words, languages."""
