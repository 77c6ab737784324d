"""The embedded server for the front ends."""

from mydata_like.demo.demo_site import DemoSite, open_demo

__all__ = ["DemoSite", "open_demo"]
