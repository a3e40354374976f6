"""A FastMCP server with one of everything, in both eras, over any transport.

    fastmcp_server.py [http|sse|stdio] [PORT]     # PORT 0, the default, picks a free one

Over HTTP it prints its address on stderr, once connections are accepted:

    listening on http://127.0.0.1:43121/mcp       # http
    listening on http://127.0.0.1:43121/sse       # sse

The tools `ask`, `sample` and `roots` need something from the client. Before 2026-07-28 they send it a
request; since then they return `input_required` and are called again with the answer.
"""

import asyncio
import socket
import sys
import warnings

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

# Sampling and roots are deprecated since 2026-07-28; that we use them anyway is the point.
warnings.filterwarnings("ignore", message=".*SEP-2577.*")

server = FastMCP("fastmcp-interop", version="1.0", instructions="One of everything.")


def is_modern(context: Context) -> bool:
    return context.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS


@server.tool(annotations={"readOnlyHint": True})
def echo(message: str) -> str:
    """Return the message."""
    return message


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers; the result is structured, too."""
    return a + b


@server.tool
async def slow(steps: int, context: Context) -> str:
    """Report progress once per step."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await asyncio.sleep(0.01)
    return f"{steps} steps"


@server.tool
def fail() -> str:
    """Fail on purpose."""
    raise ToolError("failed on purpose")


NAME_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


@server.tool(output_schema=None)
async def ask(question: str, context: Context) -> str | InputRequiredResult:
    """Ask the user (elicitation)."""
    if is_modern(context):
        answers = context.input_responses
        if not answers or "name" not in answers:
            params = mcp_types.ElicitRequestFormParams(message=question, requested_schema=NAME_SCHEMA)
            return InputRequiredResult(
                input_requests={"name": mcp_types.ElicitRequest(params=params)},
                request_state="asked once",
            )
        result = answers["name"]
    else:
        result = await context.session.elicit_form(
            question, NAME_SCHEMA, related_request_id=context.request_id
        )
    return f"{result.action}: {(result.content or {}).get('name')}"


@server.tool(output_schema=None)
async def sample(prompt: str, context: Context) -> str | InputRequiredResult:
    """Ask the client's model (sampling)."""
    message = mcp_types.SamplingMessage(
        role="user", content=mcp_types.TextContent(type="text", text=prompt)
    )
    if is_modern(context):
        answers = context.input_responses
        if not answers or "answer" not in answers:
            params = mcp_types.CreateMessageRequestParams(messages=[message], max_tokens=100)
            return InputRequiredResult(
                input_requests={"answer": mcp_types.CreateMessageRequest(params=params)}
            )
        result = answers["answer"]
    else:
        result = await context.session.create_message(
            [message], max_tokens=100, related_request_id=context.request_id
        )
    return result.content.text


@server.tool(output_schema=None)
async def roots(context: Context) -> str | InputRequiredResult:
    """Ask which folders the client opened (roots)."""
    if is_modern(context):
        answers = context.input_responses
        if not answers or "roots" not in answers:
            return InputRequiredResult(input_requests={"roots": mcp_types.ListRootsRequest()})
        result = answers["roots"]
    else:
        result = await context.session.list_roots()
    return " ".join(str(root.uri) for root in result.roots)


@server.resource("tiny://greeting", mime_type="text/plain")
def greeting() -> str:
    return "Hello"


@server.resource("tiny://greeting/{who}", mime_type="text/plain")
def greeting_for(who: str) -> str:
    return f"Hello {who}"


@server.prompt
def greet(who: str) -> str:
    """Greet a person."""
    return f"Please greet {who}"


@server.completion
def complete(reference, argument, context):
    names = ["Ada", "Alan", "Barbara"]
    return [name for name in names if name.startswith(argument.value)]


async def main() -> None:
    transport = sys.argv[1] if len(sys.argv) > 1 else "http"
    if transport == "stdio":
        await server.run_async("stdio", show_banner=False)
        return
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    port = listener.getsockname()[1]
    path = "/sse" if transport == "sse" else "/mcp"
    # The socket listens already: a client that connects now is served once the server is up.
    print(f"listening on http://127.0.0.1:{port}{path}", file=sys.stderr, flush=True)
    await server.run_http_async(
        show_banner=False,
        transport=transport,
        path=path,
        port=port,
        sockets=[listener],
        # It would be written to stdout, which may be a pipe without a reader.
        uvicorn_config={"access_log": False},
    )


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
