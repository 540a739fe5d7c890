"""The types of the vendors' own Python packages: checks of requests, and answers built from them."""

import json
import pkgutil
import sys
import typing
from importlib import import_module

# The packages declare lists of requests as iterables, which pydantic reads only when they are used.
typing.Iterable = typing.List

import anthropic.types
import openai.types.chat
import openai.types.responses
import pydantic
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from typing_extensions import is_typeddict


class Refused(Exception):
    """A request that the vendor would refuse."""


def need(condition, reason):
    if not condition:
        raise Refused(reason)


def as_list(cls, source, handler):
    return handler.generate_schema(typing.List[typing.get_args(source) or (typing.Any,)])


def forbid_unknown_keys(package):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".beta" not in module.name:
            import_module(module.name)
    for name, module in list(sys.modules.items()):
        if not name.startswith(package.__name__ + "."):
            continue
        for value in list(vars(module).values()):
            if is_typeddict(value) and "__pydantic_config__" not in vars(value):
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", strict=True)


for package in (openai, anthropic):
    sequence = import_module(package.__name__ + "._types").SequenceNotStr
    sequence.__get_pydantic_core_schema__ = classmethod(as_list)
    forbid_unknown_keys(import_module(package.__name__ + ".types"))

REQUESTS = {
    "openai": pydantic.TypeAdapter(CompletionCreateParamsStreaming),
    "responses": pydantic.TypeAdapter(ResponseCreateParamsStreaming),
    "anthropic": pydantic.TypeAdapter(MessageCreateParamsStreaming),
}
GEMINI = {
    "contents": pydantic.TypeAdapter(typing.List[gemini.Content]),
    "systemInstruction": pydantic.TypeAdapter(gemini.Content),
    "tools": pydantic.TypeAdapter(typing.List[gemini.Tool]),
    "toolConfig": pydantic.TypeAdapter(gemini.ToolConfig),
    "generationConfig": pydantic.TypeAdapter(gemini.GenerationConfig),
}
TOOLS = {
    "openai": pydantic.TypeAdapter(openai.types.chat.ChatCompletionToolUnionParam),
    "responses": pydantic.TypeAdapter(openai.types.responses.ToolParam),
    "anthropic": pydantic.TypeAdapter(anthropic.types.ToolUnionParam),
    "gemini": pydantic.TypeAdapter(gemini.FunctionDeclaration),
}


def check(adapter, value, place=""):
    try:
        read = adapter.validate_json(json.dumps(value))
    except pydantic.ValidationError as error:
        # The types of a union each have their errors; those that go deepest say most.
        found = sorted(error.errors(), key=lambda e: -len(e["loc"]))[:3]
        reasons = [".".join(str(part)[:40] for part in e["loc"]) + ": " + e["msg"] for e in found]
        raise Refused(place + "; ".join(reasons))
    # Some lists also take the types of answers, which let unknown fields through.
    unknown = list(unknown_fields(read))
    need(not unknown, place + "unknown fields " + ", ".join(unknown))
    return read


def check_gemini(adapter, value, place):
    read = check(adapter, value, place + ": ")
    again = adapter.dump_python(read, mode="json", by_alias=True, exclude_unset=True)
    # The types also take names that the server does not, such as `function_call`.
    need(same(again, value), f"{place}: expected {json.dumps(again)[:300]}")


def same(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other))
    # Names of types may be in lower case.
    if isinstance(one, str) and isinstance(other, str):
        return one == other or one.lower() == other.lower() and len(one) < 10
    return one == other


def check_request(vendor, body):
    if vendor != "gemini":
        check(REQUESTS[vendor], body)
    else:
        for name, value in body.items():
            need(name in GEMINI, f"unknown field {name}")
            check_gemini(GEMINI[name], value, name)
        need("contents" in body, "contents: missing")


def check_tool(vendor, tool):
    if vendor == "gemini":
        check_gemini(TOOLS[vendor], tool, "tool")
    else:
        check(TOOLS[vendor], tool)


def unknown_fields(value, path=""):
    if isinstance(value, pydantic.BaseModel):
        for name in value.model_extra or {}:
            yield f"{path}.{name}"
        for name in type(value).model_fields:
            yield from unknown_fields(getattr(value, name, None), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from unknown_fields(item, path + "[]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from unknown_fields(item, f"{path}.{name}")


ADAPTERS = {}


def built(type_, value):
    """The value as JSON, if it is one of the vendor's type without unknown fields."""
    # Making an adapter of a large union takes seconds.
    if id(type_) not in ADAPTERS:
        ADAPTERS[id(type_)] = pydantic.TypeAdapter(type_)
    adapter = ADAPTERS[id(type_)]
    read = adapter.validate_json(json.dumps(value))
    unknown = list(unknown_fields(read))
    assert not unknown, f"{type_} has no {unknown}"
    assert not isinstance(read, dict), type_
    return value
