"""A server with tools for the constructs of JSON Schema 2020-12.

    python constructs.py          serves them over standard input and output
    python constructs.py table    prints the table below as JSON

A tool returns the arguments that arrived, if they fit its schema by the package jsonschema.
"""

import asyncio
import json
import sys

import jsonschema
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
PERSON = {"type": "object", "properties": {"name": STRING, "age": INTEGER}, "required": ["name"]}
TREE = {
    "type": "object",
    "properties": {
        "value": INTEGER,
        "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
    },
    "required": ["value"],
    "additionalProperties": False,
}


def array(items, **more):
    return {"type": "array", "items": items, **more}


def nested(value, wrap):
    for _ in range(20):
        value = wrap(value)
    return value


# For each tool its schema, arguments, the same as the flags of a line, and wrong arguments with
# their error.
TABLE = []


def tool(name, properties, arguments, flags, wrong=None, error=None, **schema):
    schema = {"type": "object", **schema}
    if properties is not None:
        schema["properties"] = properties
    TABLE.append(
        {
            "tool": name,
            "schema": schema,
            "arguments": arguments,
            "flags": flags,
            "wrong": wrong,
            "error": error,
        }
    )


tool(
    "object",
    {"person": PERSON},
    {"person": {"name": "Ann", "age": 7}},
    """--person '{"name": "Ann", "age": 7}'""",
    {"person": {"age": 7}},
    "needs name, which is missing",
    required=["person"],
)
tool(
    "list_of_objects",
    {"people": array(PERSON, minItems=1, maxItems=3)},
    {"people": [{"name": "Ann"}, {"name": "Bob", "age": 8}]},
    """--people '[{"name": "Ann"}, {"name": "Bob", "age": 8}]'""",
    {"people": [{"name": "Ann"}, {"name": 7}]},
    "must be a text at [1].name, got 7",
)
tool(
    "list_of_lists",
    {"rows": array(array(NUMBER))},
    {"rows": [[1, 2.5], []]},
    "--rows '[[1, 2.5], []]'",
    {"rows": [[1], ["x"]]},
    'must be a number at [1][0], got "x"',
)
tool(
    "tuple",
    {"pair": {"type": "array", "prefixItems": [STRING, INTEGER], "items": False}},
    {"pair": ["7", 7]},
    "--pair 7 7",
    {"pair": ["a", "b"]},
    'must be a whole number at [1], got "b"',
)
tool(
    "any_of",
    {"value": {"anyOf": [INTEGER, array(STRING)]}},
    {"value": ["a", "b"]},
    "--value a b",
    {"value": {"a": 1}},
    "must be JSON: integer or list of text, got an object",
)
tool(
    "one_of",
    {"email": STRING, "phone": STRING},
    {"email": "ann@example.com"},
    "--email ann@example.com",
    {"email": "a", "phone": "1"},
    "the whole of the arguments must be a value of one form only, and it fits 2 of 2",
    oneOf=[{"required": ["email"]}, {"required": ["phone"]}],
)
tool(
    "all_of",
    {"name": {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 3}]}},
    {"name": "Ann"},
    "--name Ann",
    {"name": "Annika"},
    'must be a text of at most 3 characters, got "Annika"',
)
tool(
    "not",
    {"user": {"type": "string", "not": {"enum": ["root", "admin"]}}},
    {"user": "ann"},
    "--user ann",
    {"user": "root"},
    'must be a value other than one of "root", "admin", got "root"',
)
tool(
    "ref",
    {"person": {"$ref": "#/$defs/person"}},
    {"person": {"name": "Ann"}},
    """--person '{"name": "Ann"}'""",
    {"person": {"name": None}},
    "must be a text at name, got null",
    **{"$defs": {"person": PERSON}},
)
tool(
    "ref_by_id",
    {"person": {"$ref": "person#names"}},
    {"person": {"first": "Ann", "last": "A"}},
    """--person '{"first": "Ann", "last": "A"}'""",
    {"person": {"first": 1}},
    "must be a text at first, got 1",
    **{
        "$id": "https://example.com/tool",
        "$defs": {
            "other": {
                "$id": "person",
                "$defs": {
                    "names": {
                        "$anchor": "names",
                        "type": "object",
                        "additionalProperties": STRING,
                    }
                },
            }
        },
    },
)
tool(
    "recursive_ref",
    {"tree": {"$ref": "#/$defs/tree"}},
    {"tree": {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}},
    """--tree '{"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}'""",
    {"tree": {"value": 1, "children": [{"value": 2, "children": [{"value": "x"}]}]}},
    'must be a whole number at children[0].children[0].value, got "x"',
    **{"$defs": {"tree": TREE}},
)
tool(
    "dynamic_ref",
    {"list": {"$ref": "list"}, "name": STRING},
    {"list": [{"name": "Ann", "list": []}]},
    """--list '[{"name": "Ann", "list": []}]'""",
    {"list": [{"name": 7}]},
    "must be a text at [0].name, got 7",
    unevaluatedProperties=False,
    **{
        "$id": "https://example.com/strict",
        "$dynamicAnchor": "node",
        "$defs": {
            "list": {
                "$id": "list",
                "type": "array",
                "items": {"$dynamicRef": "#node"},
                "$defs": {"any": {"$dynamicAnchor": "node"}},
            }
        },
    },
)
tool(
    "nullable_by_type",
    {"author": {"type": ["string", "null"]}, "limit": {"type": ["integer", "null"]}},
    {"author": "ann", "limit": None},
    "--author ann --limit null",
    {"author": ["a", "b"]},
    "must be a text or null",
)
tool(
    "nullable_by_any_of",
    {
        "author": {"anyOf": [STRING, {"type": "null"}], "default": None},
        "tags": {"anyOf": [array(STRING), {"type": "null"}], "default": None},
    },
    {"author": None, "tags": ["a"]},
    "--author null --tags a",
    {"tags": {"a": 1}},
    "must be a list or null, got an object",
)
tool(
    "types",
    {"value": {"type": ["boolean", "integer", "string"]}},
    {"value": 7},
    "--value 7",
    {"value": {"a": 1}},
    "must be JSON: true or false or integer or text, got an object",
)
tool(
    "enum_of_numbers",
    {"level": {"enum": [1, 2.5, 10]}},
    {"level": 2.5},
    "--level 2.5",
    {"level": 3},
    "must be one of 1, 2.5, 10, got 3",
)
tool(
    "enum_of_all_types",
    {"value": {"enum": ["a", 1, True, None, ["b"], {"c": 1}]}},
    {"value": {"c": 1}},
    """--value '{"c": 1}'""",
    {"value": {"c": 2}},
    'must be one of "a", 1, true, null, ["b"], {"c":1}, got an object',
)
tool(
    "const",
    {"version": {"const": 2}, "kind": {"const": "event"}},
    {"version": 2, "kind": "event"},
    "--version 2 --kind event",
    {"version": 3},
    "must be 2, got 3",
)
tool(
    "defaults",
    {
        "name": STRING,
        "count": {"type": "integer", "default": 5},
        "person": {**PERSON, "default": {"name": "Ann"}},
    },
    {"name": "x"},
    "--name x",
    {"count": "many"},
    'must be a whole number, got "many"',
)
tool(
    "bounds",
    {
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "big": INTEGER,
    },
    {"age": 0, "share": 0.999, "big": 2**53 + 1},
    f"--age 0 --share 0.999 --big {2**53 + 1}",
    {"age": 151},
    "must be a number up to 150, got 151",
)
tool(
    "multiple_of",
    {"price": {"type": "number", "multipleOf": 0.25}},
    {"price": -2.75},
    "--price -2.75",
    {"price": 2.7},
    "must be a multiple of 0.25, got 2.7",
)
tool(
    "pattern",
    {"key": {"type": "string", "pattern": r"^[a-z]{2}-\d+$", "minLength": 4}},
    {"key": "ab-12"},
    "--key ab-12",
    {"key": "AB-12"},
    r'must be a text that matches ^[a-z]{2}-\d+$, got "AB-12"',
)
tool(
    "formats",
    {
        name: {"type": "string", "format": format}
        for name, format in [
            ("at", "date-time"),
            ("day", "date"),
            ("mail", "email"),
            ("url", "uri"),
            ("ip", "ipv6"),
            ("id", "uuid"),
        ]
    },
    {
        "at": "2026-11-29T13:00:00Z",
        "day": "2026-11-29",
        "mail": "ann@example.com",
        "url": "https://example.com/a?b=c",
        "ip": "::1",
        "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    },
    "--at 2026-11-29T13:00:00Z --day 2026-11-29 --mail ann@example.com "
    "--url 'https://example.com/a?b=c' --ip ::1 --id 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    {"day": ["a", "b"]},
    "must be a text, got [",
)
tool(
    "pattern_properties",
    None,
    {"S_a": "7", "I_b": 7},
    "--S_a 7 --I_b 7",
    {"I_b": "x"},
    'must be a whole number at I_b, got "x"',
    patternProperties={"^S_": STRING, "^I_": INTEGER},
    additionalProperties=False,
)
tool(
    "additional_properties",
    {
        "scores": {
            "type": "object",
            "additionalProperties": INTEGER,
            "minProperties": 1,
            "maxProperties": 2,
        }
    },
    {"scores": {"Ann": 7, "größe": -1}},
    """--scores '{"Ann": 7, "größe": -1}'""",
    {"scores": {"Ann": "x"}},
    'must be a whole number at Ann, got "x"',
)
tool(
    "other_properties",
    {"name": STRING},
    {"name": "7", "a": 7, "b-c": 8},
    "--name 7 --a 7 --b-c 8",
    {"a": "x"},
    'must be a whole number at a, got "x"',
    additionalProperties=INTEGER,
)
tool(
    "other_unevaluated_properties",
    None,
    {"name": "7", "a": "8", "b": "9"},
    "--name 7 --a 8 --b 9",
    {"a": {"b": 1}},
    "must be a text at a, got an object",
    anyOf=[{"properties": {"name": STRING}}, {"required": ["b"]}],
    unevaluatedProperties=STRING,
)
tool(
    "no_additional_properties",
    {"name": STRING},
    {"name": "Ann"},
    "--name Ann",
    {"nam": "Ann"},
    "unknown",
    additionalProperties=False,
)
tool(
    "property_names",
    {"labels": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 8}}},
    {"labels": {"color": "red", "size": [1]}},
    """--labels '{"color": "red", "size": [1]}'""",
    {"labels": {"Color": "red"}},
    "labels",
)
tool(
    "dependent_required",
    {"card": STRING, "address": STRING},
    {"card": "1234", "address": "A 1"},
    '--card 1234 --address "A 1"',
    {"card": "1234"},
    "is required and missing",
    dependentRequired={"card": ["address"]},
)
tool(
    "dependent_schemas",
    {"card": STRING, "address": {}},
    {"card": "1", "address": {"street": "A"}},
    """--card 1 --address '{"street": "A"}'""",
    {"card": "1", "address": {}},
    "needs street, which is missing",
    dependentSchemas={
        "card": {
            "properties": {"address": {"type": "object", "required": ["street"]}},
            "required": ["address"],
        }
    },
)
tool(
    "if_then_else",
    {"country": {"enum": ["US", "NL"]}, "code": STRING},
    {"country": "US", "code": "01234"},
    "--country US --code 01234",
    {"country": "US", "code": "1234 AB"},
    'must be a text that matches ^[0-9]{5}$, got "1234 AB"',
    **{
        "if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
        "then": {"properties": {"code": {"pattern": "^[0-9]{5}$"}}},
        "else": {"required": ["code"]},
    },
)
tool(
    "unevaluated_properties",
    {"kind": {"enum": ["home", "work"]}},
    {"street": "A", "city": "7", "kind": "home"},
    "--street A --city 7 --kind home",
    {"city": "B", "zip": "1"},
    "zip",
    allOf=[
        {"properties": {"street": STRING}},
        {"properties": {"city": STRING}, "required": ["city"]},
    ],
    unevaluatedProperties=False,
)
tool(
    "unevaluated_items",
    {
        "values": {
            "type": "array",
            "prefixItems": [STRING],
            "contains": INTEGER,
            "unevaluatedItems": {"type": "boolean"},
        }
    },
    {"values": ["a", 7, True]},
    "--values a 7 true",
    {"values": ["a", 7, "x"]},
    'must be true or false at [2], got "x"',
)
tool(
    "contains",
    {
        "values": {
            "type": "array",
            "contains": {"type": "integer", "minimum": 5},
            "minContains": 2,
            "maxContains": 3,
        }
    },
    {"values": [1, 5, 6]},
    "--values 1 5 6",
    {"values": [1, 5]},
    "must be a list with 2 to 3 items of a form, got 1",
)
tool(
    "unique_items",
    {"values": array({"type": ["integer", "object"]}, uniqueItems=True)},
    {"values": [1, {"a": 1}, {"a": 2}]},
    """--values '[1, {"a": 1}, {"a": 2}]'""",
    {"values": [{"a": 1}, {"a": 1.0}]},
    'must be a list without repetitions, got {"a":1.0} twice',
)
tool(
    "contents",
    {
        "data": {
            "type": "string",
            "contentEncoding": "base64",
            "contentMediaType": "application/json",
        },
        "text": {"type": "string", "contentMediaType": "text/html"},
    },
    {"data": "eyJhIjogMX0=", "text": "<p>\"A\" 'B' \\ `C` $D\n#E</p>"},
    "--data eyJhIjogMX0= --text \"<p>\\\"A\\\" 'B' \\\\ `C` $D\n#E</p>\"",
    {"data": {"a": 1}},
    "must be a text, got an object",
)
tool(
    "odd_names",
    {
        "FooBar": INTEGER,
        "$filter": STRING,
        "user.name": STRING,
        "größe": NUMBER,
        "id": STRING,
        "ID": INTEGER,
        "a b": STRING,
        "help": STRING,
        "x-y_z": {"type": "boolean"},
    },
    {
        "FooBar": 1,
        "$filter": "a eq 1",
        "user.name": "ann",
        "größe": 1.5,
        "id": "7",
        "ID": 7,
        "a b": "c",
        "help": "me",
        "x-y_z": False,
    },
    '--FooBar 1 --filter "a eq 1" --user-name ann --größe 1.5 --id-2 7 --ID 7 --a-b c '
    "--help-2 me --x-y_z off",
    {"FooBar": 1, "user.name": ["a", "b"]},
    "must be a text, got [",
    required=["FooBar"],
)
tool(
    "any_value",
    {"value": {}, "other": {"description": "Anything"}},
    {"value": [1, "a", None, {"b": False}], "other": "text"},
    """--value '[1, "a", null, {"b": false}]' --other text""",
)
tool(
    "boolean_schemas",
    {"yes": True, "no": False},
    {"yes": {"a": []}},
    """--yes '{"a": []}'""",
    {"no": 1},
    "no",
)
tool(
    "no_properties",
    None,
    {"first": 1, "second": {"a": "b"}},
    """--first 1 --second '{"a": "b"}'""",
)
tool(
    "deep_and_large",
    {
        "deep": nested(INTEGER, lambda schema: {"type": "object", "properties": {"a": schema}}),
        "numbers": array(INTEGER, maxItems=1000),
        "text": {"type": "string", "maxLength": 4000},
    },
    {
        "deep": nested(7, lambda value: {"a": value}),
        "numbers": list(range(1000)),
        "text": "é" * 4000,
    },
    f"--deep '{json.dumps(nested(7, lambda value: {'a': value}))}' "
    f"--numbers {' '.join(map(str, range(1000)))} --text {'é' * 4000}",
    {"deep": nested("x", lambda value: {"a": value})},
    f"must be a whole number at a{'.a' * 19}, got",
)


async def list_tools(_context, _params):
    tools = [types.Tool(name=row["tool"], input_schema=row["schema"]) for row in TABLE]
    return types.ListToolsResult(tools=tools)


def mistakes(schema, arguments):
    errors = jsonschema.Draft202012Validator(schema).iter_errors(arguments)
    return [error.message for error in errors]


async def call_tool(_context, params):
    arguments = params.arguments or {}
    schema = next(row["schema"] for row in TABLE if row["tool"] == params.name)
    wrong = mistakes(schema, arguments)
    content = [types.TextContent(type="text", text="; ".join(wrong) or json.dumps(arguments))]
    return types.CallToolResult(content=content, is_error=bool(wrong))


async def main():
    server = Server("constructs", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if sys.argv[1:] == ["table"]:
    for row in TABLE:
        jsonschema.Draft202012Validator.check_schema(row["schema"])
        assert not mistakes(row["schema"], row["arguments"]), row
        assert row["wrong"] is None or mistakes(row["schema"], row["wrong"]), row
    json.dump(TABLE, sys.stdout)
else:
    asyncio.run(main())
