"""Makes requests with the official Python SDK and prints what was answered as a JSON list.

    python_calls.py [--era auto|legacy|modern] --calls FILE --stdio COMMAND ARGUMENT...
    python_calls.py [--era ...] --calls FILE --url URL [--transport http|sse]

FILE has a JSON list of `{"method": ..., "params": ...}`. Each is answered by `{"result": ...}` or `{"error": ...}`, with
what was `received` before: progress and log messages. A list in the list is made at once, and answered by the `answers` and
the `order` in which they came.
"""

import argparse
import asyncio
import json
import warnings

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

# Logging is deprecated since 2026-07-28; that we listen anyway is the point.
warnings.filterwarnings("ignore", message=".*SEP-2577.*")

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


async def answer_elicitation(context, params):
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def answer_sampling(context, params):
    content = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")


async def answer_roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///project", name="project")])


async def answer(client: Client, method: str, params: dict, on_progress):
    match method:
        case "tools/list":
            return await client.list_tools()
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case "prompts/list":
            return await client.list_prompts()
        case "tools/call":
            return await client.call_tool(
                params["name"], params.get("arguments", {}), progress_callback=on_progress
            )
        case "resources/read":
            return await client.read_resource(params["uri"])
        case "prompts/get":
            return await client.get_prompt(params["name"], params.get("arguments", {}))
    raise ValueError(f"no method {method}")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", choices=list(MODES), default="auto")
    parser.add_argument("--calls", required=True)
    parser.add_argument("--url")
    parser.add_argument("--transport", choices=["http", "sse"], default="http")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    with open(arguments.calls) as file:
        calls = json.load(file)
    if arguments.stdio:
        server = StdioServerParameters(command=arguments.stdio[0], args=arguments.stdio[1:])
    else:
        server = sse_client(arguments.url) if arguments.transport == "sse" else arguments.url
    answers, received = [], []

    async def on_progress(progress, total, message):
        received.append(["progress", progress, total, message])

    async def on_log(params):
        received.append(["log", params.level, params.data, params.logger])

    client = Client(
        server,
        mode=MODES[arguments.era],
        read_timeout_seconds=30,
        logging_callback=on_log,
        log_level="debug",
        elicitation_callback=answer_elicitation,
        sampling_callback=answer_sampling,
        list_roots_callback=answer_roots,
    )

    async def send(call):
        try:
            result = await answer(client, call["method"], call.get("params") or {}, on_progress)
            return {"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}
        except MCPError as error:
            return {"error": {"code": error.error.code, "message": error.error.message}}

    async def send_in_order(number, call, order):
        answered = await send(call)
        order.append(number)
        return answered

    async with client:
        for call in calls:
            if isinstance(call, list):
                order = []
                together = [send_in_order(number, one, order) for number, one in enumerate(call)]
                answered = {"answers": await asyncio.gather(*together), "order": order}
            else:
                answered = await send(call)
            answers.append({**answered, "received": received.copy()})
            received.clear()
    print(json.dumps(answers))


asyncio.run(main())
