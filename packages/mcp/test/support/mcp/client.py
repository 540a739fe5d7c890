"""FastMCP's client, or the official Python one, as a user of our server.

Prints its findings as JSON: python client.py fastmcp|mcp REVISION http URL
                             python client.py fastmcp|mcp REVISION stdio COMMAND ARGUMENT...
"""

import asyncio
import base64
import hashlib
import json
import os
import sys

import fastmcp
import mcp
from fastmcp.client.elicitation import ElicitResult as Answer
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from mcp.types import ElicitResult

library, revision, way, target, *args = sys.argv[1:]
modern = revision == "2026-07-28"
# "auto" asks for the server's capabilities first, in the newest revision.
mode = "auto" if modern else "legacy"
found = {"asked": [], "notified": []}
WATCHED = "skill://test-greeting/SKILL.md"


async def elicit(context, params):
    found["asked"].append(params.message)
    return ElicitResult(action="accept", content={})


async def fast_elicit(message, response_type, params, context):
    found["asked"].append(message)
    return Answer(action="accept", content={})


async def notified(message):
    method = getattr(message, "method", None)
    if method == "notifications/resources/updated":
        found["notified"].append(str(message.params.uri))
    elif method == "notifications/resources/list_changed":
        found["notified"].append("list")


def text(result):
    return "".join(getattr(part, "text", "") for part in result.content)


def content(result):
    return result.contents if hasattr(result, "contents") else result


async def every(page, key):
    """All pages of a list of the official client; FastMCP walks them itself."""
    if library == "fastmcp":
        return await page()
    rows, cursor = [], None
    while True:
        result = await page(cursor=cursor)
        rows += getattr(result, key)
        cursor = result.next_cursor
        if not cursor:
            return rows


async def told(client):
    async def change():
        await client.call_tool("test_trigger_prompt_change", {})

    if library == "mcp" and modern:
        filter = {"resources_list_changed": True, "resource_subscriptions": [WATCHED]}
        async with client.listen(**filter) as stream:
            await change()
            async for event in stream:
                found["notified"].append(str(getattr(event, "uri", "list")))
                if {"list", WATCHED} <= set(found["notified"]):
                    break
    elif library == "mcp":
        await client.subscribe_resource(WATCHED)
        await change()
        for _ in range(400):
            if {"list", WATCHED} <= set(found["notified"]):
                break
            await asyncio.sleep(0.05)


async def use(client):
    found["tools"] = sorted(tool.name for tool in await every(client.list_tools, "tools"))
    found["call"] = text(await client.call_tool("test_simple_text", {}))
    found["done"] = text(await client.call_tool("test_elicitation", {"message": "Hello"}))
    rows = await every(client.list_resources, "resources")
    found["resources"] = [str(row.uri) for row in rows]
    found["templates"] = len(await every(client.list_resource_templates, "resource_templates"))
    forms = await client.read_resource("skill://a-guide/references/forms.md")
    found["text"] = content(forms)[0].text
    logo = await client.read_resource("skill://a-guide/assets/logo.png")
    found["blob"] = content(logo)[0].blob
    found["prompts"] = sorted(p.name for p in await every(client.list_prompts, "prompts"))
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    found["prompt"] = prompt.messages[0].content.text

    if library == "fastmcp" and modern:
        skills = await client.list_skills()
        found["skills"] = [skill.uri for skill in skills]
        found["verified"] = 0
        for skill in skills:
            assert (await client.get_skill(skill.uri)) == skill
            for file in skill.resources:
                part = content(await client.read_resource(file.uri))[0]
                data = getattr(part, "text", None)
                data = base64.b64decode(part.blob) if data is None else data.encode()
                assert len(data) == file.size
                assert "sha256:" + hashlib.sha256(data).hexdigest() == file.digest
                found["verified"] += 1

    await told(client)


async def main():
    environment = dict(os.environ)
    if library == "fastmcp":
        where = target if way == "http" else StdioTransport(target, args, env=environment)
        options = {"elicitation_handler": fast_elicit, "extensions": [SkillsClientExtension()]}
        client = fastmcp.Client(where, mode=mode, message_handler=notified, **options)
    else:
        parameters = mcp.StdioServerParameters(command=target, args=args, env=environment)
        where = target if way == "http" else parameters
        options = {"elicitation_callback": elicit}
        client = mcp.Client(where, mode=mode, message_handler=notified, **options)

    async with client:
        found["version"] = client.protocol_version
        await use(client)

    found["notified"] = sorted(set(found["notified"]))
    print(json.dumps(found))


asyncio.run(asyncio.wait_for(main(), 120))
