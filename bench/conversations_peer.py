#!/usr/bin/env python3
"""Conversations of Pydantic AI, as a peer of bench/conversations.exs, which calls it.

    python bench/conversations_peer.py COUNT TURNS WAIT

COUNT conversations have TURNS turns at the same time. The model answers each input after WAIT
milliseconds with a call of a tool, and then with text. Prints the nanoseconds of each turn without
those of the model. Needs the package pydantic-ai-slim.
"""

import asyncio
import sys
import time

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


async def converse(turns, wait):
    waited = 0

    async def answer(messages, _info):
        nonlocal waited
        began = time.perf_counter_ns()
        await asyncio.sleep(wait)
        waited += time.perf_counter_ns() - began
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart("It is added.")])
        return ModelResponse(parts=[ToolCallPart("add", {"name": last.content})])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def add(name: str) -> str:
        """Adds a name."""
        return f"Added {name}."

    history, times = [], []
    for turn in range(turns):
        waited, began = 0, time.perf_counter_ns()
        result = await agent.run(f"Add tea {turn}.", message_history=history)
        times.append(time.perf_counter_ns() - began - waited)
        history = result.all_messages()
    return times


async def main():
    count, turns, wait = (int(argument) for argument in sys.argv[1:])
    # The first turns load code.
    await converse(2, 0)
    for times in await asyncio.gather(*(converse(turns, wait / 1000) for _ in range(count))):
        print(*times, sep="\n")


asyncio.run(main())
