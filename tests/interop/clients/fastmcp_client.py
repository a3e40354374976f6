"""Drives a server with FastMCP's client and prints what it saw as one JSON object.

    fastmcp_client.py --url URL [--transport http|sse] [--era auto]
    fastmcp_client.py [--era auto] --stdio COMMAND ARGUMENT...

The server is expected to have the tools, the resource and the prompt of `servers/fastmcp_server.py`.
Status 0: everything was answered. Otherwise `error` has the failure, here and on stderr.
"""

import argparse
import asyncio
import json
import sys
import warnings

from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

warnings.filterwarnings("ignore")


async def answer_elicitation(message, response_type, params, context):
    return {"name": "Ada"}


async def answer_sampling(messages, params, context):
    return "sampled"


async def talk(client, progress, seen) -> None:
    seen["tools"] = [tool.name for tool in await client.list_tools()]
    seen["echo"] = (await client.call_tool("echo", {"message": "hello"})).content[0].text
    added = await client.call_tool("add", {"a": 2, "b": 40})
    seen["add"] = added.structured_content
    try:
        await client.call_tool("fail", {"message": "no luck"})
    except ToolError as error:
        seen["fail"] = str(error)
    await client.call_tool("slow", {"steps": 3})
    seen["progress"] = len(progress)
    seen["ask"] = (await client.call_tool("ask", {"question": "name?"})).content[0].text
    seen["sample"] = (await client.call_tool("sample", {"prompt": "hi"})).content[0].text
    seen["roots"] = (await client.call_tool("roots", {})).content[0].text
    seen["resource"] = (await client.read_resource("tiny://greeting"))[0].text
    seen["prompt"] = (await client.get_prompt("greet", {"who": "Ada"})).messages[0].content.text


async def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--transport", choices=["http", "sse"], default="http")
    parser.add_argument("--era", default="auto")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if arguments.stdio:
        transport = StdioTransport(command=arguments.stdio[0], args=arguments.stdio[1:])
    elif arguments.transport == "sse":
        transport = SSETransport(arguments.url)
    else:
        transport = StreamableHttpTransport(arguments.url)
    seen = dict.fromkeys("tools echo add fail progress ask sample roots resource prompt error".split())
    progress = []

    async def on_progress(done, total, message):
        progress.append(done)

    client = Client(
        transport,
        elicitation_handler=answer_elicitation,
        sampling_handler=answer_sampling,
        roots=["file:///project"],
        progress_handler=on_progress,
        timeout=30,
    )
    try:
        async with asyncio.timeout(30):
            async with client:
                await talk(client, progress, seen)
    except Exception as error:
        seen["error"] = f"{type(error).__name__}: {error}"
        print(seen["error"], file=sys.stderr)
    print(json.dumps(seen))
    return 1 if seen["error"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
