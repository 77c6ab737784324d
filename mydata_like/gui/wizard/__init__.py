"""The first start: six short pages from a server's address to a test file that arrived."""

from mydata_like.gui.wizard.setup_wizard import SetupWizard

__all__ = ["SetupWizard"]
