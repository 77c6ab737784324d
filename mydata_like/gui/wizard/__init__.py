"""The first start: a few short pages, from where the data goes to the first upload."""

from mydata_like.gui.wizard.setup_wizard import SetupWizard

__all__ = ["SetupWizard"]
