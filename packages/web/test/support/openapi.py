"""Checks a description of OpenAPI 3.1, and requests and answers by it.

Reads a file of JSON: `description`, other descriptions in `changed`, `fields` of queries as
[operation, field, value], and `answers` as [operation, status, body]. Prints JSON: the mistakes of
the `descriptions`, whether each of the `fields` is as described, and the mistakes of the `answers`.
"""

import json
import sys

from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
description = given["description"]
registry = Registry().with_resource("urn:api", DRAFT202012.create_resource(description))
operations = {
    operation["operationId"]: operation
    for path in description["paths"].values()
    for operation in path.values()
}


def resolve(part):
    if "$ref" not in part:
        return part
    return registry.resolver("urn:api").lookup(part["$ref"]).contents


# References in a schema are those of the description.
def mistakes(schema, value):
    schema = {"$id": "urn:api", **description, **schema}
    validator = OAS31Validator(schema, registry=registry)
    return [error.message for error in validator.iter_errors(value)]


def field(operation, name, value):
    for parameter in operations[operation]["parameters"]:
        if parameter["name"] == name:
            if parameter["schema"]["type"] == "integer" and value.isdigit():
                value = int(value)
            return mistakes(parameter["schema"], value) == []
    return False


def answer(operation, status, body):
    response = operations[operation]["responses"].get(str(status))
    if response is None:
        return [f"{status} is not described"]
    return mistakes(resolve(response)["content"]["application/json"]["schema"], body)


def wrong(description):
    return [error.message for error in OpenAPIV31SpecValidator(description).iter_errors()]


print(
    json.dumps(
        {
            "descriptions": [wrong(one) for one in [description, *given["changed"]]],
            "fields": [field(*row) for row in given["fields"]],
            "answers": [answer(*row) for row in given["answers"]],
        }
    )
)
