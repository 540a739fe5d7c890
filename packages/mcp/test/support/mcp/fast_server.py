"""A server of FastMCP: `fast_server.py stdio`, or `fast_server.py http PORT` at /mcp."""

import sys

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

mcp = FastMCP("fast", instructions="Only a test")


@mcp.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int = 1) -> int:
    """Adds two integers"""
    return a + b


@mcp.tool
def describe(words: list[str], options: dict[str, int]) -> dict:
    """Describes words"""
    return {"words": words, "options": options}


@mcp.tool
def fail() -> str:
    """Always fails"""
    raise ToolError("no luck today")


if sys.argv[1] == "stdio":
    mcp.run(transport="stdio", show_banner=False)
else:
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
