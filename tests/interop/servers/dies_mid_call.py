"""Answers properly until a tool is called: then it ends with status 3 and no answer.

    dies_mid_call.py [METHOD]     # die on another method
"""

import sys

import plain

for request in plain.requests():
    if request["method"] == plain.method_to_spoil():
        print("fatal: the database is gone", file=sys.stderr, flush=True)
        sys.exit(3)
    plain.send(plain.answer(request))
