"""mydata-like uploads instrument data to a MyTardis server and proves that every byte arrived."""

__version__ = "0.9.0"
