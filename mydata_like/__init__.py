"""mydata-like carries research data to a host, folder, bucket or MyTardis server, and proves it."""

__version__ = "0.9.0"
