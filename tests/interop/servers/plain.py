"""A correct MCP server without any SDK: the servers with faults are made from it.

It serves the legacy era over stdio and has one tool, `echo`. `server/discover` is an unknown method to it.
As a program of its own it has no faults.
"""

import json
import sys

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]

ECHO = {
    "name": "echo",
    "description": "Return the message.",
    "inputSchema": {
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    },
}


def requests():
    """Every request on stdin, until its end. Notifications need no answer and are left out."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            yield message


def answer(request: dict) -> dict:
    """The right answer to a request."""
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            wanted = params.get("protocolVersion")
            result = {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1.0"},
            }
        case "ping":
            result = {}
        case "tools/list":
            result = {"tools": [ECHO]}
        case "tools/call" if params.get("name") == "echo":
            result = text(params.get("arguments", {}).get("message", ""))
        case "tools/call":
            return error(request, -32602, f"no tool named {params.get('name')}")
        case method:
            return error(request, -32601, f"no method named {method}")
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def text(text: str) -> dict:
    """A tool's result."""
    return {"content": [{"type": "text", "text": text}]}


def error(request: dict, code: int, message: str) -> dict:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


def send(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for request in requests():
        send(answer(request))
