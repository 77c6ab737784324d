"""Windows are tested without a screen, and look the same on every computer."""

import os

os.environ["QT_QPA_PLATFORM"] = "offscreen"
