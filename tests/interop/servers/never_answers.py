"""Reads everything and says nothing, until stdin ends."""

import sys

for _ in sys.stdin:
    pass
