"""A content in memory, as the senders read it."""

import random

from mydata_like.core import hashing
from mydata_like.core.errors import FileChangedError


class Content:
    """Random bytes; `wrong` has the size at which reading fails, or the whole size at the end."""

    def __init__(self, size, wrong=None):
        self.data = random.Random(size).randbytes(size)
        self.checksum = hashing.new()
        self.remaining = size
        self.finished = False
        self._wrong = wrong

    def read(self, size):
        start = len(self.data) - self.remaining
        if self._wrong is not None and start >= self._wrong:
            raise FileChangedError("It changed.", code="file.changed")
        data = self.data[start : start + size]
        self.remaining -= len(data)
        return data

    def finish(self):
        if self._wrong is not None:
            raise FileChangedError("It changed.", code="file.changed")
        self.finished = True
        return self.checksum.hexdigest()
