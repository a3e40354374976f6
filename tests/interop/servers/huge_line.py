"""Answers a tool call with one line of a bit over 20 MiB.

    huge_line.py [MEBIBYTES]
"""

import sys

import plain

mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 20

for request in plain.requests():
    message = plain.answer(request)
    if request["method"] == "tools/call":
        message["result"] = plain.text("x" * (mebibytes * 1024 * 1024))
    plain.send(message)
