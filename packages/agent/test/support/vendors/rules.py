"""The rules of each vendor that its types do not express: keys, the order of messages, results of
calls, and its own data, which has to come back as it was."""

import json
import re

from checks import need

PATHS = {
    "openai": r"/v1/chat/completions",
    "responses": r"/v1/responses",
    "anthropic": r"/v1/messages",
    "gemini": r"/v1beta/models/[^/?]+:streamGenerateContent\?alt=sse",
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


def key_of(vendor, headers):
    if vendor == "anthropic":
        return headers.get("x-api-key")
    if vendor == "gemini":
        return headers.get("x-goog-api-key")
    authorization = headers.get("authorization")
    if authorization is None:
        return None
    need(authorization.startswith("Bearer "), "authorization: expected Bearer")
    return authorization.removeprefix("Bearer ")


def check_head(vendor, path, headers):
    need(path is None or re.fullmatch(PATHS[vendor], path), f"path {path}")
    need(headers.get("content-type") == "application/json", "content-type")
    need(headers.get("accept") == "text/event-stream", "accept")
    if vendor == "anthropic" and path is not None:
        need(headers.get("anthropic-version") == "2023-06-01", "anthropic-version")


def check_body(vendor, body, issued):
    RULES[vendor](body, issued)


def need_name(name):
    need(NAME.match(name), f"name of a tool: {name}")


def need_issued(data, issued):
    need(data in issued, f"data that this server did not send: {json.dumps(data)[:200]}")


def openai(body, _issued):
    waiting = []
    for place, message in enumerate(body["messages"]):
        role = message["role"]
        need(role != "system" or place == 0, "a system message after the first message")
        if role == "tool":
            need(message["tool_call_id"] in waiting, "a result without its call")
            waiting.remove(message["tool_call_id"])
        else:
            need(not waiting, f"calls without results: {waiting}")
        for call in message.get("tool_calls", []):
            need_name(call["function"]["name"])
            arguments = json.loads(call["function"]["arguments"])
            need(isinstance(arguments, dict), "arguments that are no object")
            need(len(call["id"]) <= 40, "an id of a call with more than 40 characters")
            waiting.append(call["id"])
    need(not waiting, f"calls without results: {waiting}")
    need(body["messages"][-1]["role"] in ("user", "tool"), "the last message")


def responses(body, issued):
    need(body.get("store") is False, "store")
    waiting = []
    for item in body["input"]:
        kind = item.get("type")
        if kind == "function_call":
            need_name(item["name"])
            need(len(item["call_id"]) <= 64, "an id of a call with more than 64 characters")
            need(isinstance(json.loads(item["arguments"]), dict), "arguments that are no object")
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            need(item["call_id"] in waiting, "a result without its call")
            waiting.remove(item["call_id"])
        elif kind == "reasoning":
            need_issued(item, issued)
        else:
            need(not waiting, f"calls without results: {waiting}")
    need(not waiting, f"calls without results: {waiting}")


def anthropic(body, issued):
    marks = json.dumps(body).count('"cache_control"')
    need(marks <= 4, f"{marks} cache_control, at most 4")
    roles = [message["role"] for message in body["messages"]]
    need(roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], f"roles {roles}")
    for block in body.get("system", []):
        need(block["text"].strip(), "an empty system prompt")
    waiting = set()
    for message in body["messages"]:
        content = message["content"]
        need(content, "a message without content")
        results = [block for block in content if block["type"] == "tool_result"]
        need(content[: len(results)] == results, "results after other content")
        need({block["tool_use_id"] for block in results} == waiting, "results of other calls")
        need(len(results) == len(waiting), "a result twice")
        waiting = set()
        for block in content:
            if block["type"] == "text":
                need(block["text"].strip(), "an empty text")
            if block["type"] == "tool_use":
                need_name(block["name"])
                need(re.fullmatch("[a-zA-Z0-9_-]+", block["id"]), f"id of a call: {block['id']}")
                waiting.add(block["id"])
            if block["type"] in ("thinking", "redacted_thinking"):
                need_issued(block, issued)


def gemini(body, issued):
    calls = []
    need(body["contents"][0]["role"] == "user", "the first role")
    for content in body["contents"]:
        need(content["parts"], "a content without parts")
        results = [part["functionResponse"] for part in content["parts"]
                   if "functionResponse" in part]
        names = [result["name"] for result in results]
        need(names == [call["name"] for call in calls], f"results {names} of {len(calls)} calls")
        ids = [(call.get("id"), result.get("id")) for call, result in zip(calls, results)]
        need(all(call == result for call, result in ids), f"ids of calls and results: {ids}")
        parts = [part for part in content["parts"] if "functionCall" in part]
        calls = [part["functionCall"] for part in parts]
        need(not parts or "thoughtSignature" in parts[0], "a call without thoughtSignature")
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature not in (None, "skip_thought_signature_validator"):
                need_issued(part, issued)
            if part.get("thought"):
                need_issued(part, issued)
    need(not calls, "calls without results")
    need(body["contents"][-1]["role"] == "user", "the last role")


RULES = {"openai": openai, "responses": responses, "anthropic": anthropic, "gemini": gemini}


def issued_by(vendor, answer, events):
    """The data of an answer that later requests have to give back unchanged."""
    if vendor == "anthropic":
        for part in answer.get("parts", []):
            if "thought" in part:
                block = {"thinking": part["thought"], "signature": part["signature"]}
                yield {"type": "thinking", **block}
            if "redacted" in part:
                yield {"type": "redacted_thinking", "data": part["redacted"]}
    if vendor == "responses":
        for event in events:
            if event["type"] == "response.output_item.done" and "encrypted_content" in event["item"]:
                yield event["item"]
    if vendor == "gemini":
        for event in events:
            for candidate in event.get("candidates", []):
                for part in candidate["content"]["parts"]:
                    if "thoughtSignature" in part or part.get("thought"):
                        yield part


def given_back(vendor, body):
    """The data of the vendor in a request, in order."""
    if vendor == "anthropic":
        blocks = [block for message in body["messages"] for block in message["content"]]
        return [block for block in blocks if "thinking" in block["type"]]
    if vendor == "responses":
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    if vendor == "gemini":
        parts = [part for content in body["contents"] for part in content["parts"]]
        return [part for part in parts if "thoughtSignature" in part or part.get("thought")]
    return []


def prompt(vendor, body):
    """The prompt as the vendor's cache reads it: tools, then the system prompt, then each block of
    the messages. Marks for the cache are no part of it."""
    if vendor == "anthropic":
        blocks = [[message["role"], block] for message in body["messages"]
                  for block in message["content"]]
        parts = [body.get("tools"), body.get("system"), *blocks]
    elif vendor == "openai":
        parts = [body.get("tools"), *body["messages"]]
    elif vendor == "responses":
        parts = [body.get("tools"), body.get("instructions"), *body["input"]]
    else:
        parts = [body.get("systemInstruction"), body.get("tools"), *body["contents"]]
    return "\n".join(json.dumps(unmarked(part)) for part in parts)


def results(vendor, body):
    """The arguments of each call with the text of its result, as lines."""
    calls, texts = {}, {}
    if vendor == "anthropic":
        for message in body["messages"]:
            for block in message["content"]:
                if block["type"] == "tool_use":
                    calls[block["id"]] = block["input"]
                if block["type"] == "tool_result":
                    texts[block["tool_use_id"]] = block["content"]
    elif vendor == "openai":
        for message in body["messages"]:
            for call in message.get("tool_calls", []):
                calls[call["id"]] = call["function"]["arguments"]
            if message["role"] == "tool":
                texts[message["tool_call_id"]] = message["content"]
    elif vendor == "responses":
        for item in body["input"]:
            if item.get("type") == "function_call":
                calls[item["call_id"]] = item["arguments"]
            if item.get("type") == "function_call_output":
                texts[item["call_id"]] = item["output"]
    else:
        parts = [part for content in body["contents"] for part in content["parts"]]
        made = [part["functionCall"]["args"] for part in parts if "functionCall" in part]
        got = [part["functionResponse"] for part in parts if "functionResponse" in part]
        calls, texts = dict(enumerate(made)), dict(enumerate(got))
    return [f"{calls[id]} => {texts[id]}" for id in calls]


def unmarked(value):
    if isinstance(value, dict):
        return {name: unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [unmarked(one) for one in value] if isinstance(value, list) else value
