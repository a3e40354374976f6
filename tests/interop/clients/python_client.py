"""Drives a server with the official Python SDK and prints what it saw as one JSON object.

    python_client.py --url URL [--transport http|sse] [--era auto|legacy|modern]
    python_client.py [--era ...] --stdio COMMAND ARGUMENT...

The server is expected to have the tools, the resource and the prompt of `servers/fastmcp_server.py`.
Status 0: everything was answered. Otherwise `error` has the failure, here and on stderr.
"""

import argparse
import asyncio
import json
import sys
import warnings

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

# Sampling and roots are deprecated since 2026-07-28; that we use them anyway is the point.
warnings.filterwarnings("ignore", message=".*SEP-2577.*")

# The `mode` of `Client` for each era. With a version, the client sends no probe.
MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


async def answer_elicitation(context, params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def answer_sampling(context, params):
    return types.CreateMessageResult(
        role="assistant",
        content=types.TextContent(type="text", text="sampled"),
        model="none",
        stop_reason="endTurn",
    )


async def answer_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///project", name="project")])


def text_of(result) -> str:
    text = "".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise RuntimeError(f"the tool failed: {text}")
    return text


async def call_unknown_tool(client):
    try:
        result = await client.call_tool("no_such_tool", {})
    except MCPError as error:
        return {"kind": "protocol_error", "code": error.error.code, "message": error.error.message}
    if not result.is_error:
        raise RuntimeError("an unknown tool was answered as if it existed")
    return {"kind": "is_error", "code": None, "message": result.content[0].text}


async def talk(client, seen) -> None:
    seen["protocol_version"] = client.protocol_version
    tools = await client.list_tools()
    seen["tools"] = [tool.name for tool in tools.tools]
    seen["echo"] = text_of(await client.call_tool("echo", {"message": "hello"}))
    seen["add"] = text_of(await client.call_tool("add", {"a": 2, "b": 40}))
    seen["unknown"] = await call_unknown_tool(client)

    progress = []

    async def on_progress(done, total, message):
        progress.append(done)

    text_of(await client.call_tool("slow", {"steps": 3}, progress_callback=on_progress))
    seen["progress"] = len(progress)

    seen["ask"] = text_of(await client.call_tool("ask", {"question": "name?"}))
    seen["sample"] = text_of(await client.call_tool("sample", {"prompt": "hi"}))
    seen["roots"] = text_of(await client.call_tool("roots", {}))

    uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
    if "tiny://greeting" not in uris:
        raise RuntimeError(f"tiny://greeting is not listed, only {uris}")
    seen["resource"] = (await client.read_resource("tiny://greeting")).contents[0].text

    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    if "greet" not in prompts:
        raise RuntimeError(f"the prompt greet is not listed, only {prompts}")
    seen["prompt"] = (await client.get_prompt("greet", {"who": "Ada"})).messages[0].content.text

    reference = types.PromptReference(type="ref/prompt", name="greet")
    completed = await client.complete(reference, {"name": "who", "value": "A"})
    seen["completion"] = list(completed.completion.values)


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--transport", choices=["http", "sse"], default="http")
    parser.add_argument("--era", choices=list(MODES), default="auto")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--stdio", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if bool(arguments.url) == bool(arguments.stdio):
        parser.error("give either --url or --stdio")
    return arguments


def innermost(error: BaseException) -> BaseException:
    """The cause in a group: the SDK's task groups wrap whatever goes wrong in them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def main() -> int:
    arguments = read_arguments()
    if arguments.stdio:
        server = StdioServerParameters(command=arguments.stdio[0], args=arguments.stdio[1:])
    elif arguments.transport == "sse":
        server = sse_client(arguments.url, timeout=arguments.timeout)
    else:
        server = arguments.url
    seen = dict.fromkeys(
        "protocol_version tools echo add unknown progress ask sample roots resource prompt completion error".split()
    )
    client = Client(
        server,
        mode=MODES[arguments.era],
        client_info=types.Implementation(name="python-client", version="1.0"),
        elicitation_callback=answer_elicitation,
        sampling_callback=answer_sampling,
        list_roots_callback=answer_roots,
        read_timeout_seconds=arguments.timeout,
    )
    try:
        async with asyncio.timeout(arguments.timeout):
            async with client:
                await talk(client, seen)
    except Exception as error:
        cause = innermost(error)
        seen["error"] = f"{type(cause).__name__}: {cause}"
        print(seen["error"], file=sys.stderr)
    print(json.dumps(seen))
    return 1 if seen["error"] else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
