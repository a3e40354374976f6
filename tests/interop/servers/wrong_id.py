"""Answers a tool call under an id that nobody used.

    wrong_id.py [METHOD]     # for another method
"""

import plain

for request in plain.requests():
    message = plain.answer(request)
    if request["method"] == plain.method_to_spoil():
        message["id"] = f"not-{request['id']}"
    plain.send(message)
