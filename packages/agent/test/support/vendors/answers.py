"""Answers of each vendor, built from its own types: events of a stream, or a whole answer.

An answer is a dict:

    parts   a list of {"text": [pieces]}, {"refusal": [pieces]}, {"thought": text, "signature": s},
            {"redacted": data} and {"call": {"id", "name", "pieces": [pieces of its arguments]}}
    finish  "stop", "tool_calls", "length" or "filtered"
    usage   {"prompt", "completion", "cached", "written"}, where the prompt counts all
    mixed   true if the arguments of all calls arrive in turns
"""

import json

from anthropic.types import Message, RawMessageStreamEvent
from checks import built
from google.genai import types as gemini
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

MODEL = "model-of-the-server"
USAGE = {"prompt": 100, "completion": 10, "cached": 0, "written": 0}


def parts_of(answer):
    return answer.get("parts", [])


def calls_of(answer):
    return [part["call"] for part in parts_of(answer) if "call" in part]


def text_of(answer, kind="text"):
    return "".join("".join(part[kind]) for part in parts_of(answer) if kind in part)


def turns(calls):
    """The pieces of all calls, in turns."""
    longest = max((len(call["pieces"]) for call in calls), default=0)
    for place in range(longest):
        for index, call in enumerate(calls):
            if place < len(call["pieces"]):
                yield index, call["pieces"][place]


# OpenAI's chat interface

CHAT_FINISH = {"filtered": "content_filter"}


def chat_usage(usage):
    details = {"cached_tokens": usage["cached"], "cache_write_tokens": usage["written"]}
    return {
        "prompt_tokens": usage["prompt"],
        "completion_tokens": usage["completion"],
        "total_tokens": usage["prompt"] + usage["completion"],
        "prompt_tokens_details": details,
    }


def chat(answer):
    usage = {**USAGE, **answer.get("usage", {})}
    finish = answer.get("finish", "stop")
    finish = CHAT_FINISH.get(finish, finish)
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}

    def chunk(choices, **fields):
        return built(ChatCompletionChunk, {**base, "choices": choices, **fields})

    def delta(fields, reason=None):
        return chunk([{"index": 0, "delta": fields, "finish_reason": reason}])

    yield delta({"role": "assistant", "content": ""})
    calls, index = calls_of(answer), 0
    for part in parts_of(answer):
        for kind, field in (("text", "content"), ("refusal", "refusal")):
            for piece in part.get(kind, []):
                yield delta({field: piece})
        if "call" in part:
            call = part["call"]
            function = {"name": call["name"], "arguments": ""}
            start = {"index": index, "id": call["id"], "type": "function", "function": function}
            yield delta({"tool_calls": [start]})
            for piece in [] if answer.get("mixed") else call["pieces"]:
                yield delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            index += 1
    for index, piece in turns(calls) if answer.get("mixed") else []:
        yield delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield delta({}, finish)
    yield chunk([], usage=chat_usage(usage))
    yield "[DONE]"


def whole_chat(answer):
    usage = {**USAGE, **answer.get("usage", {})}
    message = {"role": "assistant", "content": text_of(answer)}
    if text_of(answer, "refusal"):
        message["refusal"] = text_of(answer, "refusal")
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": "".join(call["pieces"])},
        }
        for call in calls_of(answer)
    ]
    if calls:
        message["tool_calls"] = calls
    finish = answer.get("finish", "stop")
    choice = {"index": 0, "message": message, "finish_reason": CHAT_FINISH.get(finish, finish)}
    fields = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL}
    return built(ChatCompletion, {**fields, "choices": [choice], "usage": chat_usage(usage)})


# Anthropic

STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


def anthropic_usage(usage):
    return {
        "input_tokens": usage["prompt"] - usage["cached"] - usage["written"],
        "cache_read_input_tokens": usage["cached"],
        "cache_creation_input_tokens": usage["written"],
        "output_tokens": usage["completion"],
    }


def anthropic_message(content, reason, usage, details=None):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL}
    rest = {"content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}
    return {**message, **rest, **({"stop_details": details} if details else {})}


def refusal_details(answer):
    text = text_of(answer, "refusal")
    return {"type": "refusal", "category": "cyber", "explanation": text} if text else None


def anthropic(answer):
    usage = anthropic_usage({**USAGE, **answer.get("usage", {})})

    def event(type_, **fields):
        return built(RawMessageStreamEvent, {"type": type_, **fields})

    first = anthropic_message([], None, {**usage, "output_tokens": 1})
    yield event("message_start", message=first)
    yield {"type": "ping"}
    index = 0
    for part in parts_of(answer):
        if "refusal" in part:
            continue
        block, deltas = anthropic_block(part)
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
        index += 1
    delta = {"stop_reason": STOPS[answer.get("finish", "stop")], "stop_sequence": None}
    if refusal_details(answer):
        delta["stop_details"] = refusal_details(answer)
    yield event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]})
    yield event("message_stop")


def anthropic_block(part):
    if "text" in part:
        deltas = [{"type": "text_delta", "text": piece} for piece in part["text"]]
        return {"type": "text", "text": ""}, deltas
    if "thought" in part:
        half = len(part["thought"]) // 2
        pieces = [part["thought"][:half], part["thought"][half:]]
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        deltas.append({"type": "signature_delta", "signature": part["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if "redacted" in part:
        return {"type": "redacted_thinking", "data": part["redacted"]}, []
    call = part["call"]
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in call["pieces"]]
    return {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}, deltas


def whole_anthropic(answer):
    content = []
    for part in parts_of(answer):
        if "text" in part:
            content.append({"type": "text", "text": "".join(part["text"])})
        elif "thought" in part:
            block = {"thinking": part["thought"], "signature": part["signature"]}
            content.append({"type": "thinking", **block})
        elif "redacted" in part:
            content.append({"type": "redacted_thinking", "data": part["redacted"]})
        elif "call" in part:
            call = part["call"]
            block = {"id": call["id"], "name": call["name"]}
            block["input"] = json.loads("".join(call["pieces"]) or "{}")
            content.append({"type": "tool_use", **block})
    usage = anthropic_usage({**USAGE, **answer.get("usage", {})})
    reason = STOPS[answer.get("finish", "stop")]
    return built(Message, anthropic_message(content, reason, usage, refusal_details(answer)))


# OpenAI's Responses

INCOMPLETE = {"length": "max_output_tokens", "filtered": "content_filter"}


def response(answer, status, output):
    usage = {**USAGE, **answer.get("usage", {})}
    value = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": MODEL,
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    if status in ("completed", "incomplete"):
        value["usage"] = {
            "input_tokens": usage["prompt"],
            "input_tokens_details": {
                "cached_tokens": usage["cached"],
                "cache_write_tokens": usage["written"],
            },
            "output_tokens": usage["completion"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["prompt"] + usage["completion"],
        }
    if status == "incomplete":
        value["incomplete_details"] = {"reason": INCOMPLETE[answer["finish"]]}
    if status == "failed":
        value["error"] = answer["failed"]
    return value


def response_items(answer, status="completed"):
    for index, part in enumerate(parts_of(answer)):
        if "text" in part or "refusal" in part:
            if "text" in part:
                content = {"type": "output_text", "text": "".join(part["text"]), "annotations": []}
            else:
                content = {"type": "refusal", "refusal": "".join(part["refusal"])}
            item = {"id": f"msg_{index}", "type": "message", "role": "assistant"}
            item = {**item, "status": status, "content": [content]}
            if "phase" in part:
                item["phase"] = part["phase"]
            yield part, item
        elif "thought" in part:
            summary = [{"type": "summary_text", "text": part["thought"]}]
            item = {"id": f"rs_{index}", "type": "reasoning", "summary": summary}
            yield part, {**item, "encrypted_content": part["signature"]}
        elif "call" in part:
            call = part["call"]
            item = {"id": f"fc_{index}", "type": "function_call", "call_id": call["id"]}
            arguments = "".join(call["pieces"])
            yield part, {**item, "name": call["name"], "arguments": arguments, "status": status}


def responses(answer):
    number = 0

    def event(type_, **fields):
        nonlocal number
        value = {"type": "response." + type_, "sequence_number": number, **fields}
        number += 1
        return built(ResponseStreamEvent, value)

    yield event("created", response=response(answer, "in_progress", []))
    yield event("in_progress", response=response(answer, "in_progress", []))
    items = []
    for index, (part, item) in enumerate(response_items(answer)):
        place = {"output_index": index, "item_id": item["id"]}
        start = {**item, "content": []} if item["type"] == "message" else dict(item)
        if "status" in start:
            start["status"] = "in_progress"
        if item["type"] == "function_call":
            start["arguments"] = ""
        if item["type"] == "reasoning":
            start = {**start, "encrypted_content": "incomplete", "summary": []}
        yield event("output_item.added", output_index=index, item=start)
        if item["type"] == "message":
            kind = "text" if "text" in part else "refusal"
            name = "output_text" if kind == "text" else "refusal"
            for piece in part[kind]:
                fields = {"content_index": 0, "delta": piece, **place}
                if kind == "text":
                    fields["logprobs"] = []
                yield event(f"{name}.delta", **fields)
            content = {"content_index": 0, "part": item["content"][0], **place}
            yield event("content_part.done", **content)
        elif item["type"] == "function_call":
            for piece in part["call"]["pieces"]:
                yield event("function_call_arguments.delta", delta=piece, **place)
            done = {"arguments": item["arguments"], **place}
            yield event("function_call_arguments.done", **done)
        yield event("output_item.done", output_index=index, item=item)
        items.append(item)
    status = end_status(answer)
    yield event(status, response=response(answer, status, items))


def end_status(answer):
    if "failed" in answer:
        return "failed"
    return "incomplete" if answer.get("finish") in INCOMPLETE else "completed"


def whole_responses(answer):
    items = [item for _, item in response_items(answer)]
    return built(Response, response(answer, end_status(answer), items))


# Gemini

REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"}


def gemini_parts(answer):
    signature = None
    for part in parts_of(answer):
        if "thought" in part:
            yield {"text": part["thought"], "thought": True}
            signature = part["signature"]
        elif "call" in part:
            call = part["call"]
            function = {"name": call["name"], "args": json.loads("".join(call["pieces"]) or "{}")}
            if call.get("id"):
                function["id"] = call["id"]
            value = {"functionCall": function}
            if signature:
                value["thoughtSignature"] = signature
            yield value
            signature = None
        else:
            for piece in part.get("text", []):
                yield {"text": piece}
    if signature:
        yield {"text": "", "thoughtSignature": signature}


def gemini_usage(answer):
    usage = {**USAGE, **answer.get("usage", {})}
    counts = {"promptTokenCount": usage["prompt"], "candidatesTokenCount": usage["completion"]}
    counts["totalTokenCount"] = usage["prompt"] + usage["completion"]
    return {**counts, **({"cachedContentTokenCount": usage["cached"]} if usage["cached"] else {})}


def gemini_response(**fields):
    value = {"modelVersion": MODEL, "responseId": "r1", **fields}
    return built(gemini.GenerateContentResponse, value)


def gemini_(answer):
    usage = gemini_usage(answer)
    if text_of(answer, "refusal"):
        # Without candidates, the prompt was blocked.
        feedback = {"blockReason": "SAFETY", "blockReasonMessage": text_of(answer, "refusal")}
        yield gemini_response(promptFeedback=feedback, usageMetadata=usage)
        return
    for part in gemini_parts(answer):
        content = {"role": "model", "parts": [part]}
        yield gemini_response(candidates=[{"content": content, "index": 0}], usageMetadata=usage)
    reason = answer.get("reason") or REASONS[answer.get("finish", "stop")]
    content = {"role": "model", "parts": [{"text": ""}]}
    candidate = {"content": content, "finishReason": reason, "index": 0}
    yield gemini_response(candidates=[candidate], usageMetadata=usage)


def whole_gemini(answer):
    usage = gemini_usage(answer)
    if text_of(answer, "refusal"):
        return list(gemini_(answer))[0]
    content = {"role": "model", "parts": list(gemini_parts(answer))}
    reason = REASONS[answer.get("finish", "stop")]
    candidate = {"content": content, "finishReason": reason, "index": 0}
    return gemini_response(candidates=[candidate], usageMetadata=usage)


STREAMS = {"openai": chat, "anthropic": anthropic, "responses": responses, "gemini": gemini_}
WHOLE = {
    "openai": whole_chat,
    "anthropic": whole_anthropic,
    "responses": whole_responses,
    "gemini": whole_gemini,
}
