"""A server of FastMCP: `fast_server.py stdio`, or `fast_server.py http PORT` at /mcp.

`fast_server.py older PORT` speaks the older revisions only, and its streams can be resumed.
"""

import asyncio
import sys

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.event_store import EventStore

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


@mcp.tool
async def slow(ctx: Context) -> str:
    """Closes its stream before it answers"""
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return "the end"


@mcp.prompt
def review(code: str, tone: str = "kind") -> str:
    """Asks for a review of code"""
    return f"Review this in a {tone} tone: {code}"


def without_discovery(app):
    async def serve(scope, receive, send):
        if (b"mcp-method", b"server/discover") in scope.get("headers", []):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    return serve


if sys.argv[1] == "stdio":
    mcp.run(transport="stdio", show_banner=False)
elif sys.argv[1] == "older":
    app = mcp.http_app(event_store=EventStore(), retry_interval=100)
    uvicorn.run(without_discovery(app), port=int(sys.argv[2]), log_level="error")
else:
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
