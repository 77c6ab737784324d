"""What only root may do."""

import os

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
