"""Answers properly, but writes 4 MiB to stderr before each answer: who does not read stderr waits forever.

    floods_stderr.py [MEBIBYTES]
"""

import sys

import plain

mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 4

for request in plain.requests():
    for number in range(mebibytes * 1024):
        sys.stderr.write(f"{number:08} ".ljust(1023, ".") + "\n")
    sys.stderr.flush()
    plain.send(plain.answer(request))
