"""HubSpot's interface as its package describes it: the paths, queries and models are read from the
code of hubspot-api-client, which is generated from HubSpot's own description."""

import datetime
import inspect
import re
import types

import hubspot.crm.associations.v4 as associations
import hubspot.crm.associations.v4.schema as schema
import hubspot.crm.companies as companies
import hubspot.crm.contacts as contacts
import hubspot.crm.deals as deals
import hubspot.crm.objects.calls as calls
import hubspot.crm.objects.meetings as meetings
import hubspot.crm.objects.notes as notes
import hubspot.crm.objects.tasks as tasks
import hubspot.crm.owners as owners
import hubspot.crm.pipelines as pipelines
import hubspot.crm.properties as properties
import hubspot.crm.tickets as tickets
from service import Broken, Violation, need

# The name of a method in the log and of faults: hubspot.contacts.search, with the kind of records
# in place of the star.
NAMES = {"get_by_id": "get", "do_search": "search", "batch/create": "batch_create",
         "batch/read": "batch_read", "batch/update": "batch_update", "batch/upsert": "batch_upsert",
         "batch/archive": "batch_archive"}


# Without it the constructors check nothing.
STRICT = types.SimpleNamespace(client_side_validation=True)


class Route:
    def __init__(self, name, http, path, query, body, answers, models):
        self.name, self.http, self.path, self.query = name, http, path, query
        self.body, self.answers, self.models = body, answers, models
        parts = re.split(r"\{(\w+)\}", path)
        pattern = "".join(re.escape(part) if n % 2 == 0 else f"(?P<{part}>[^/]+)"
                          for n, part in enumerate(parts))
        self.pattern = re.compile(pattern)


def routes(name, package, api):
    models = package.models
    found = []
    for method, function in inspect.getmembers(api, inspect.isfunction):
        if not method.endswith("_with_http_info"):
            continue
        code, doc = inspect.getsource(function), inspect.getdoc(function)
        path, http = re.search(r'call_api\(\s*"([^"]+)",\s*"([A-Z]+)"', code).groups()
        kinds = dict(re.findall(r":type (\w+): (\S+?)(?:, optional)?$", doc, re.M))
        query = {outer: kinds[inner] for outer, inner in re.findall(
            r'query_params\.append\(\("(\w+)", local_var_params\["(\w+)"\]\)\)', code)}
        body = re.search(r'body_params = local_var_params\["(\w+)"\]', code)
        answers = {int(status): type_ for status, type_ in
                   re.findall(r'^\s+(\d+): "([^"]+)",$', code, re.M)}
        action = method[: -len("_with_http_info")]
        action = re.sub(r"^batch/", "batch/", ("batch/" if "/batch/" in path else "") + action)
        found.append(Route(f"{name}.{NAMES.get(action, action)}", http, path, query,
                           kinds[body.group(1)] if body else None, answers, models))
    return found


ROUTES = []
for kind, package in [("contacts", contacts), ("companies", companies), ("deals", deals),
                      ("tickets", tickets), ("notes", notes), ("tasks", tasks), ("calls", calls),
                      ("meetings", meetings)]:
    for api in (package.BasicApi, package.BatchApi, package.SearchApi):
        ROUTES += routes(f"hubspot.{kind}", package, api)
ROUTES += routes("hubspot.associations", associations, associations.BasicApi)
ROUTES += routes("hubspot.labels", schema, schema.DefinitionsApi)
ROUTES += routes("hubspot.pipelines", pipelines, pipelines.PipelinesApi)
ROUTES += routes("hubspot.properties", properties, properties.CoreApi)
ROUTES += routes("hubspot.owners", owners, owners.OwnersApi)


def find(http, path):
    """The route of a request and the values in its path."""
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match and route.http == http:
            return route, match.groupdict()
    raise Violation(f"{http} {path}: HubSpot's description has no such method", 404)


def query(route, pairs):
    """The query, checked. Lists are repeated, or one value with commas."""
    values = {}
    for name, text in pairs:
        need(name in route.query, f"{route.name} has no parameter {name!r}")
        type_ = route.query[name]
        if type_.startswith("list["):
            values.setdefault(name, []).extend(text.split(","))
            continue
        need(name not in values, f"the parameter {name!r} is given twice")
        if type_ == "int":
            need(re.fullmatch(r"-?\d+", text), f"the parameter {name!r} is no int: {text!r}")
            values[name] = int(text)
        elif type_ == "bool":
            need(text in ("true", "false"), f"the parameter {name!r} is no bool: {text!r}")
            values[name] = text == "true"
        else:
            values[name] = text
    return values


def checked(value, type_, models, where="the body", nulls=False):
    """Checks a JSON value by a type of the package: no unknown fields, no other types, all
    required fields, and the values of enumerations, which the models' constructors check. HubSpot
    answers null for what has no value, and takes none."""
    if value is None and nulls:
        return value
    part = re.fullmatch(r"list\[(.*)\]", type_)
    if part:
        need(isinstance(value, list), f"{where} is no list")
        for n, one in enumerate(value):
            checked(one, part.group(1), models, f"{where}[{n}]", nulls)
        return value
    part = re.fullmatch(r"dict\[[^,]*, (.*)\]", type_)
    if part:
        need(isinstance(value, dict), f"{where} is no object")
        for name, one in value.items():
            checked(one, part.group(1), models, f"{where}.{name}", nulls)
        return value
    if type_ in ("str", "bool", "int", "float"):
        fits = {"str": isinstance(value, str), "bool": isinstance(value, bool),
                "int": isinstance(value, int) and not isinstance(value, bool),
                "float": isinstance(value, (int, float)) and not isinstance(value, bool)}
        need(fits[type_], f"{where} is no {type_}: {value!r}")
        return value
    if type_ == "datetime":
        need(isinstance(value, str), f"{where} is no time: {value!r}")
        try:
            datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            raise Violation(f"{where} is no time: {value!r}") from None
        return value
    if type_ == "object":
        return value
    model = getattr(models, type_)
    need(isinstance(value, dict), f"{where} is no {type_}: {value!r}")
    names = {outer: inner for inner, outer in model.attribute_map.items()}
    unknown = sorted(set(value) - set(names))
    need(not unknown, f"{where} has unknown fields: {', '.join(unknown)}")
    fields = {}
    for name, one in value.items():
        inner = names[name]
        checked(one, model.openapi_types[inner], models, f"{where}.{name}", nulls)
        fields[inner] = one
    try:
        model(**fields, local_vars_configuration=STRICT)
    except ValueError as reason:
        raise Violation(f"{where}: {reason}") from None
    return value


def answer(route, status, value):
    """Checks an answer of the module by the description."""
    try:
        need(status in route.answers, f"it has no answer {status}")
        checked(value, route.answers[status], route.models, "the answer", nulls=True)
    except Violation as reason:
        raise Broken(f"{route.name}: {reason}") from None
    return value
