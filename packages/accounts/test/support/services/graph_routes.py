"""Microsoft Graph v1.0 as its package describes it: the paths, methods, queries and models are read
from the code of msgraph-sdk, which is generated from Microsoft's OpenAPI description. It is read in
its archive: installed, its 17,000 files have 130 MB.

Where the reference (https://learn.microsoft.com/graph/api/overview) has more than the description,
it stands here: mails in MIME, batches, the content of an attachment, a file by its name in a
folder, paths of a person's drive, and annotations."""

import base64
import datetime
import functools
import glob
import re
import sys
import zipfile

from service import Broken, Violation, need

ARCHIVE = zipfile.ZipFile(glob.glob(f"{sys.prefix}/graph/msgraph_sdk-*.whl")[0])
ROOT = "msgraph/generated/"
# The parts of the description that the services here play.
FOLDERS = re.compile(r"users/item/(?:messages|mail_folders|send_mail|calendar|calendars|events|"
                     r"calendar_view|drive)/|drives/item/(?:items|root|search_with_q)/")
# Other parts below them.
LEFT_OUT = re.compile(r"/workbook/|/list_item/|/analytics/|/versions/|/extensions/|/rules/|"
                      r"/created_by_user/|/last_modified_by_user/|/calendar_permissions/")
# The type of a body that the description does not have: a mail in MIME, in base64.
MIME = {"POST /me/messages", "POST /me/sendMail"}
SESSION = ("drives/item/items/item/create_upload_session/"
           "create_upload_session_request_builder.py")
ANNOTATIONS = {"@odata.type", "@odata.id", "@odata.context", "@odata.etag", "@odata.nextLink",
               "@odata.deltaLink", "@microsoft.graph.conflictBehavior",
               "@microsoft.graph.downloadUrl", "@removed"}


class Route:
    """`name` is for the log and faults: "POST /me/messages/{id}/move"."""

    def __init__(self, http, path, query, body, type_, answer):
        self.http, self.query, self.body, self.type, self.answer = http, query, body, type_, answer
        named = re.sub(r"\{[^}]*\}", "{id}", path)
        self.name = f"{http} {named}"
        pattern = re.split(r"\{[^}]*\}", path)
        self.pattern = re.compile(r"([^/]+?)".join(re.escape(part) for part in pattern))


def text_of(name):
    return ARCHIVE.read(ROOT + name).decode()


def person(path):
    """The path below a person's own address, or None."""
    if path.startswith("/users/{user-id}"):
        return path.replace("/users/{user-id}", "/me", 1)
    # A person's drive has the paths of any drive.
    if path.startswith("/drives/{drive-id}"):
        return path.replace("/drives/{drive-id}", "/me/drive", 1)
    return None


def routes_of(name):
    code = text_of(name)
    template = re.search(r'super\(\).__init__\(request_adapter, "\{\+baseurl\}([^"]*)"', code)
    if not template:
        return
    template = template[1].replace("%2D", "-").replace("%24", "$")
    # Required parameters stand before the others: ?endDateTime={endDateTime}{&$select}.
    path, _, query = re.sub(r"\{\?", "?", template, count=1).partition("?")
    names = set(re.findall(r"[$\w]+", re.sub(r"=\{\w+\}", "", query)))
    path = person(path)
    if path is None:
        return
    for function in re.split(r"\n    (?:async )?def ", code):
        found = re.match(r"to_(\w+)_request_information\(self,(?:body: ([\w.]+),)?", function)
        if not found:
            continue
        http = re.search(r"Method\.([A-Z]+)", function)[1]
        type_ = re.search(r'set_content_from_parsable\([^,]*, "([^"]*)"', function)
        stream = re.search(r"set_stream_content\(body", function)
        type_ = type_[1] if type_ else ("*" if stream else None)
        answer = re.search(rf"async def {found[1]}\(.*?\) -> (?:Optional\[(\w+)\]|None)", code)
        yield Route(http, path, names if http == "GET" else set(),
                    (found[2], name) if found[2] else None, type_,
                    (answer[1], name) if answer and answer[1] else None)


@functools.lru_cache(maxsize=None)
def routes():
    found = []
    for name in ARCHIVE.namelist():
        name = name.removeprefix(ROOT)
        if (name.endswith("_request_builder.py") and FOLDERS.match(name)
                and not LEFT_OUT.search(name)):
            found += routes_of(name)
    found += [Route("POST", "/$batch", set(), None, "application/json", None),
              Route("GET", "/me/messages/{id}/attachments/{id}/$value", set(), None, None, None),
              Route("GET", "/me/events/{id}/attachments/{id}/$value", set(), None, None, None),
              Route("PUT", "/me/drive/items/{id}:/{id}:/content",
                    {"@microsoft.graph.conflictBehavior"}, None, "*",
                    ("DriveItem", "drives/item/items/items_request_builder.py")),
              Route("POST", "/me/drive/items/{id}:/{id}:/createUploadSession", set(),
                    ("CreateUploadSessionPostRequestBody", SESSION), "application/json",
                    ("UploadSession", SESSION))]
    # The longest fixed part first: /messages/delta() is no message.
    found.sort(key=lambda route: (route.name.count("{"), -len(route.name)))
    return found


def find(http, path):
    """The route of a request, and the ids in its path as they were written."""
    for route in routes():
        match = route.pattern.fullmatch(path)
        if match and route.http == http:
            return route, list(match.groups())
    raise Violation(f"{http} {path}: Graph's description has no such method", 404)


def query(route, pairs):
    values = {}
    for name, text in pairs:
        short = name if name.startswith("$") or name in route.query else "$" + name
        need(short in route.query, f"{route.name} has no parameter {name!r}")
        need(short not in values, f"the parameter {name!r} is given twice")
        values[short] = text
    for name in ("$top", "$skip"):
        need(re.fullmatch(r"\d+", values.get(name, "1")), f"{name} is no number")
    return values


# Models

@functools.lru_cache(maxsize=None)
def source(name, near):
    """The file of a class: a model, or one beside the file that uses it."""
    code = text_of(near)
    found = re.search(rf"from (\.+)([\w.]+) import {name}$", code, re.M)
    if not found:
        return near if re.search(rf"^class {name}\(", code, re.M) else None
    folder = near.split("/")[:-len(found[1])]
    return "/".join(folder + found[2].split(".")) + ".py"


@functools.lru_cache(maxsize=None)
def fields(name, near):
    """The types of a model's fields by their names."""
    file = source(name, near)
    if file is None:
        raise Broken(f"the description has no {name} near {near}")
    code = text_of(file)
    found = {}
    for outer, kind, of in re.findall(
            r'"([^"]+)": lambda n : setattr\(self, \'\w+\', n\.get_(\w+)\((\w*)\)\)', code):
        found[outer] = (kind, of, file)
    parent = re.search(rf"^class {name}\((\w+), Parsable\)", code, re.M)
    if parent and parent[1] != "AdditionalDataHolder":
        found = {**fields(parent[1], file), **found}
    return found


@functools.lru_cache(maxsize=None)
def values_of(name, near):
    code = text_of(source(name, near))
    return set(re.findall(r'^    \w+ = "([^"]*)",?', code, re.M))


DERIVED = {"#microsoft.graph.fileAttachment": "FileAttachment",
           "#microsoft.graph.itemAttachment": "ItemAttachment",
           "#microsoft.graph.referenceAttachment": "ReferenceAttachment",
           "#microsoft.graph.eventMessageRequest": "EventMessageRequest"}


def checked(value, model, where="the body", nulls=True):
    """Checks a JSON value by a model: no unknown fields, no other types."""
    name, near = model
    need(isinstance(value, dict), f"{where} is no {name}: {value!r}")
    known = fields(name, near)
    derived = DERIVED.get(value.get("@odata.type"))
    if derived:
        # Beside the other models.
        known = fields(derived, f"models/{re.sub('(?<!^)(?=[A-Z])', '_', derived).lower()}.py")
    for field, one in value.items():
        if field in ANNOTATIONS or field.endswith("@odata.context"):
            continue
        need(field in known, f"{where} has an unknown field of {name}: {field}")
        if one is None:
            need(nulls, f"{where}.{field} is null")
            continue
        typed(one, known[field], f"{where}.{field}", nulls)
    return value


def typed(value, type_, where, nulls):
    kind, of, near = type_
    if kind.startswith("collection_of_"):
        need(isinstance(value, list), f"{where} is no list: {value!r}")
        kind = {"collection_of_object_values": "object_value",
                "collection_of_enum_values": "enum_value",
                "collection_of_primitive_values": of + "_value"}[kind]
        for number, one in enumerate(value):
            typed(one, (kind, of, near), f"{where}[{number}]", nulls)
        return
    if kind == "object_value":
        checked(value, (of, near), where, nulls)
    elif kind == "enum_value":
        need(value in values_of(of, near), f"{where}: {value!r} is no {of}")
    elif kind == "bool_value":
        need(isinstance(value, bool), f"{where} is no bool: {value!r}")
    elif kind == "int_value":
        whole = isinstance(value, int) and not isinstance(value, bool)
        need(whole, f"{where} is no int: {value!r}")
    elif kind == "float_value":
        need(isinstance(value, (int, float)), f"{where} is no number: {value!r}")
    elif kind == "bytes_value":
        try:
            base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            raise Violation(f"{where} is not base64") from None
    elif kind == "date_value":
        try:
            datetime.date.fromisoformat(value)
        except (TypeError, ValueError):
            raise Violation(f"{where} is no date: {value!r}") from None
    elif kind in ("datetime_value", "time_value"):
        need(isinstance(value, str), f"{where} is no time: {value!r}")
    else:
        need(isinstance(value, str), f"{where} is no text: {value!r}")


def answer(route, value):
    """Checks an answer of the services by the description."""
    if route.answer is None or value is None:
        return value
    try:
        if isinstance(value, dict):
            checked(value, route.answer, "the answer")
    except Violation as reason:
        raise Broken(f"{route.name}: {reason}") from None
    return value
