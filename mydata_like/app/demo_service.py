"""The embedded server for the front ends; importable only where the extra `demo` is installed."""

from mydata_like.demo.place import DemoPlace, open_place

__all__ = ["DemoPlace", "open_place"]
