"""Calls tools that go wrong with the official Python SDK and prints what it saw, one JSON object a case.

    python_faults.py < CASES > SEEN

A case is {"name", "era", "patience", and "stdio": [COMMAND, ARGUMENT...], "http": URL or "sse": URL}. The tool is `t`; it
is called twice on one connection. What was seen is `answer`, `failure` (of the tool), `broken base64`, `error`, `silence`, or
`the end` where the conversation is over before the call is.
"""

import asyncio
import json
import sys
import warnings

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

warnings.filterwarnings("ignore")
MODES = {"legacy": "legacy", "modern": "2026-07-28"}
# So many conversations at once.
AT_ONCE = asyncio.Semaphore(25)


async def call(client, patience) -> str:
    try:
        async with asyncio.timeout(patience):
            result = await client.call_tool("t", {})
    except TimeoutError:
        return "silence"
    except Exception:
        return "error"
    if result.is_error:
        return "failure"
    image = next((block for block in result.content if block.type == "image"), None)
    return "answer" if image is None or image.data == "AAAA" else "broken base64"


async def play(case) -> dict:
    if "stdio" in case:
        server = StdioServerParameters(command=case["stdio"][0], args=case["stdio"][1:])
    elif "sse" in case:
        server = sse_client(case["sse"], timeout=50)
    else:
        server = case["http"]
    seen, begun = [], False
    try:
        # Longer than every timeout that closes a broken connection.
        async with AT_ONCE, asyncio.timeout(60):
            async with Client(server, mode=MODES[case["era"]], read_timeout_seconds=50) as client:
                # A client that has the list checks structured content.
                await client.list_tools()
                begun = True
                seen.append(await call(client, case["patience"]))
                seen.append(await call(client, case["patience"]))
    except BaseException as error:
        if not seen:
            # The SDK closes the connection with the call, so the error of the call is not available.
            seen.append("the end" if begun else f"no conversation: {type(error).__name__}")
        # How the connection closes after both calls is not part of the result.
    return {"name": case["name"], "seen": seen}


async def main() -> None:
    for seen in await asyncio.gather(*(play(case) for case in json.load(sys.stdin))):
        print(json.dumps(seen))


asyncio.run(main())
