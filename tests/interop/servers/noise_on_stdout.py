"""Answers properly, but stdout also carries what was never meant for it: a banner, log lines, bytes.

Before the first answer: 3 lines (one of them empty). Before each answer: 3 lines (text, JSON that is not
JSON-RPC, not UTF-8). After each answer: 1 line.
"""

import sys

import plain


def noise(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


noise(b"*** plain server 1.0 ***")
noise(b"")
noise(b"Ready.")
for request in plain.requests():
    noise(b"DEBUG got " + request["method"].encode())
    noise(b'{"level": "info", "text": "about to answer"}')
    noise(b"caf\xe9 \xff")
    plain.send(plain.answer(request))
    noise(b"DEBUG answered")
