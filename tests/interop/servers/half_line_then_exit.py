"""Answers properly until a tool is called: then it writes half of the answer, no newline, and ends with status 0.

    half_line_then_exit.py [METHOD]     # stop half-way in the answer to another method
"""

import json
import sys

import plain

for request in plain.requests():
    if request["method"] == plain.method_to_spoil():
        line = json.dumps(plain.answer(request))
        sys.stdout.write(line[: len(line) // 2])
        sys.stdout.flush()
        sys.exit(0)
    plain.send(plain.answer(request))
