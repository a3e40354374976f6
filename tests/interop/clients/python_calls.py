"""Makes requests with the official Python SDK and prints what was answered as a JSON list.

    python_calls.py [--era auto|legacy|modern] --calls FILE --stdio COMMAND ARGUMENT...

FILE has a JSON list of `{"method": ..., "params": ...}`. Each is answered by `{"result": ...}` or `{"error": ...}`.
"""

import argparse
import asyncio
import json

from mcp import Client, MCPError, StdioServerParameters

MODES = {"auto": "auto", "legacy": "legacy", "modern": "2026-07-28"}


async def answer(client: Client, method: str, params: dict):
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
            return await client.call_tool(params["name"], params.get("arguments", {}))
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
    answers = []
    async with Client(server, mode=MODES[arguments.era], read_timeout_seconds=30) as client:
        for call in calls:
            try:
                result = await answer(client, call["method"], call.get("params") or {})
                answers.append({"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)})
            except MCPError as error:
                answers.append({"error": {"code": error.error.code, "message": error.error.message}})
    print(json.dumps(answers))


asyncio.run(main())
