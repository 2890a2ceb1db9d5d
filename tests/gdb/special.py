"""Sessions that are more than there and back."""

from driver import Gdb, Wrong


class Skipped(Exception):
    pass


SCENARIOS, QUICK = {}, set()
