"""The distances between widgets, and the sizes of text, for the whole window."""

# Pixels at a scale of 1.
SMALL_SPACE = 4
SPACE = 8
LARGE_SPACE = 16
PICTURE = 56  # the side of the picture on a page without rows

# Average characters.
PAGE_WIDTH = 200  # the most that cards and forms take of a page; 1,200 pixels in the usual font

# Times the usual size of text.
TITLE = 1.6  # of a page or a dialog
SECTION = 1.2  # of a card or a part of a page
SMALL = 0.9  # explanations
