"""Answers properly, but does not end: not at the end of stdin, not on SIGTERM, SIGINT or SIGHUP.

A child in its process group holds out as well and keeps stdout and stderr open. Both process ids are said
on stderr first:

    server 4711 child 4712

    ignores_sigterm.py [SECONDS]     # ends by itself after that long (default 60): a failed test leaves no litter
"""

import os
import signal
import sys
import time

import plain

deadline = time.monotonic() + (float(sys.argv[1]) if len(sys.argv) > 1 else 60)


def hold_out() -> None:
    while time.monotonic() < deadline:
        time.sleep(0.1)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)

child = os.fork()
if child == 0:
    # Only the server reads requests.
    os.close(0)
    hold_out()
    os._exit(0)

print(f"server {os.getpid()} child {child}", file=sys.stderr, flush=True)
for request in plain.requests():
    plain.send(plain.answer(request))
hold_out()
