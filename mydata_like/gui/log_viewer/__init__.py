"""The log as it grows, and the support bundle."""
