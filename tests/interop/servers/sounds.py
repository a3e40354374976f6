"""A FastMCP server with a sound, and a tool that shows how far it is and what it does, over stdio."""

import warnings

from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Audio

# Logging is deprecated since 2026-07-28; that we use it anyway is the point.
warnings.filterwarnings("ignore", message=".*SEP-2577.*")

server = FastMCP("sounds", version="1.0")


@server.tool(output_schema=None)
def beep() -> Audio:
    """Return a sound."""
    return Audio(data=b"RIFF\x24\x00\x00\x00WAVE", format="wav")


@server.tool(output_schema=None)
async def talk(context: Context) -> str:
    """Report progress and log messages."""
    await context.info("tuning", logger_name="band")
    await context.report_progress(1, 2, "tuned")
    await context.warning("a string broke")
    await context.report_progress(2, 2, "played")
    return "played"


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
