"""A FastMCP server as one meets them: fourteen tools, an unknown one is a result with `isError`, SIGTERM is ignored for
eight seconds, and the end of stdin is a clean exit.

    fourteen_tools.py        # over stdio; KNOWLEDGE_PATH is a folder of Markdown files
"""

import os
import signal
import threading
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

GRACE = 8.0
ENGINES = ["durian-0.5", "durian-0.6"]

server = FastMCP("fourteen-tools", version="1.0")
folder = Path(os.environ.get("KNOWLEDGE_PATH", "instructions"))
engine = ENGINES[-1]
log: list[str] = []


def texts() -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted(folder.glob("**/*.md"))}


def ranked(words: str, limit: int) -> str:
    """Those with most of the words, best first."""
    wanted = {word.strip("?.,!/'").lower() for word in words.split()}
    score = {name: sum(text.lower().count(word) for word in wanted if word) for name, text in texts().items()}
    best = [name for name in sorted(score, key=lambda name: -score[name]) if score[name]][:limit]
    return "\n\n".join(texts()[name] for name in best) or "nothing has to do with that"


@server.tool
def route_instructions(message: str, context: dict | None = None, limit: int = 5) -> str:
    """The instructions for a message, best first."""
    log.append(message)
    return ranked(message, limit)


@server.tool
def get_instructions(topic: str | None = None, category: str | None = None, exact_match: bool = False) -> str:
    """Instructions by topic or category."""
    def fits(name: str, text: str) -> bool:
        named = topic is None or (topic == name if exact_match else topic in name)
        return named and (category is None or f"category: {category}" in text)
    return "\n\n".join(text for name, text in texts().items() if fits(name, text))


@server.tool
def search_instructions(query: str, limit: int = 10) -> str:
    """Full-text search."""
    return ranked(query, limit)


@server.tool
def switch_engine(engine_version: str) -> str:
    """Switch the routing engine."""
    global engine
    if engine_version not in ENGINES:
        raise ToolError(f"unknown engine version {engine_version!r}; there are {', '.join(ENGINES)}")
    engine = engine_version
    return f"switched to {engine}"


@server.tool
def get_engine() -> str:
    """The routing engine in use."""
    return engine


@server.tool
def list_engines() -> list[str]:
    """All routing engines."""
    return ENGINES


@server.tool
def list_topics() -> list[str]:
    """All topics."""
    return list(texts())


@server.tool
def list_categories() -> list[str]:
    """All categories."""
    lines = (line for text in texts().values() for line in text.splitlines())
    return sorted({line.removeprefix("category: ") for line in lines if line.startswith("category: ")})


@server.tool
def count_instructions() -> int:
    """How many instructions there are."""
    return len(texts())


@server.tool
def reload_instructions() -> str:
    """Reload the folder."""
    return f"{len(texts())} instructions"


@server.tool
def get_log() -> list[str]:
    """The messages that were routed."""
    return log


@server.tool
def clear_log() -> str:
    """Forget the messages that were routed."""
    log.clear()
    return "cleared"


@server.tool
def get_settings() -> dict[str, str]:
    """Where everything is."""
    return {"folder": str(folder), "cwd": os.getcwd(), "test_mode": os.environ.get("REHEARSAL_TEST_MODE", "")}


@server.tool
def health_check() -> dict[str, str]:
    """Whether all is well."""
    return {"status": "ok", "engine": engine}


def at_sigterm(*_: object) -> None:
    threading.Timer(GRACE, os._exit, [143]).start()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, at_sigterm)
    server.run(transport="stdio", show_banner=False)
