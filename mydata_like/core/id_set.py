"""A compact set for millions of ids, which are mostly consecutive."""

from collections.abc import Iterable

BITS = 64  # ids per block


class IdSet:
    """A set of ids that only grows."""

    def __init__(self) -> None:
        self._blocks: dict[int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, number: int) -> bool:
        return bool(self._blocks.get(number // BITS, 0) >> number % BITS & 1)

    def add(self, number: int) -> None:
        """Add an id."""
        block, bit = number // BITS, 1 << number % BITS
        known = self._blocks.get(block, 0)
        if not known & bit:
            self._blocks[block] = known | bit
            self._count += 1

    def update(self, numbers: Iterable[int]) -> None:
        """Add ids."""
        blocks: dict[int, int] = {}
        for number in numbers:
            blocks[number // BITS] = blocks.get(number // BITS, 0) | 1 << number % BITS
        for block, bits in blocks.items():
            known = self._blocks.get(block, 0)
            self._blocks[block] = known | bits
            self._count += (bits & ~known).bit_count()
