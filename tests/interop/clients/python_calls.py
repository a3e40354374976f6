"""Makes requests with the official Python SDK and prints what was answered as a JSON list.

    python_calls.py [--era auto|legacy|modern] --calls FILE --stdio COMMAND ARGUMENT...

FILE has a JSON list of `{"method": ..., "params": ...}`. Each is answered by `{"result": ...}` or `{"error": ...}`, with
what was `heard` before: progress and log messages.
"""

import argparse
import asyncio
import json
import warnings

from mcp import Client, MCPError, StdioServerParameters

# Logging is deprecated since 2026-07-28; that we listen anyway is the point.
warnings.filterwarnings("ignore", message=".*SEP-2577.*")

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


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
    parser.add_argument("--stdio", nargs=argparse.REMAINDER, required=True)
    arguments = parser.parse_args()
    with open(arguments.calls) as file:
        calls = json.load(file)
    server = StdioServerParameters(command=arguments.stdio[0], args=arguments.stdio[1:])
    answers, heard = [], []

    async def on_progress(progress, total, message):
        heard.append(["progress", progress, total, message])

    async def on_log(params):
        heard.append(["log", params.level, params.data, params.logger])

    client = Client(
        server,
        mode=MODES[arguments.era],
        read_timeout_seconds=30,
        logging_callback=on_log,
        log_level="debug",
    )
    async with client:
        for call in calls:
            try:
                result = await answer(client, call["method"], call.get("params") or {}, on_progress)
                said = {"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}
            except MCPError as error:
                said = {"error": {"code": error.error.code, "message": error.error.message}}
            answers.append({**said, "heard": heard.copy()})
            heard.clear()
    print(json.dumps(answers))


asyncio.run(main())
