"""Checks of requests and answers by Google's discovery documents, which
google-api-python-client carries: routes, parameters, bodies, uploads, batches, scopes, `fields`."""

import base64
import datetime
import json
import os
import re
from urllib.parse import quote, unquote

import googleapiclient.discovery_cache
from service import Answer, Broken, Call, Instead, Media, Refused, Request, Violation
from service import as_json, need, parse_json, query_pairs, replaces

FOLDER = os.path.join(os.path.dirname(googleapiclient.discovery_cache.__file__), "documents")

# The most calls in a batch, by the guides: calendar 50, the others 100.
BATCH = {"gmail": 100, "calendar": 50, "drive": 100}
CHUNK = 256 * 1024


class Api:
    def __init__(self, name, file):
        with open(os.path.join(FOLDER, file), encoding="utf-8") as stored:
            self.doc = json.load(stored)
        self.name = name
        self.schemas = self.doc["schemas"]
        # Gmail's document has "batch", its guide has batch/gmail/v1.
        self.batch_paths = {f"/batch/{name}/{self.doc['version']}", "/" + self.doc["batchPath"]}
        self.methods = {}
        self.routes = []
        self.collect(self.doc)
        # Fewer variables first: files/generateIds before files/{fileId}.
        self.routes.sort(key=lambda route: (route.variables, -len(route.template)))

    def collect(self, resource):
        for method in resource.get("methods", {}).values():
            self.methods[method["id"]] = method
            path = method["path"]
            self.routes.append(Route(method, f"/{self.doc['servicePath']}{path}", "plain"))
            for protocol in method.get("mediaUpload", {}).get("protocols", {}).values():
                self.routes.append(Route(method, protocol["path"], "upload"))
        for inner in resource.get("resources", {}).values():
            self.collect(inner)

    def schema(self, name):
        return self.schemas[name]


class Route:
    def __init__(self, method, template, kind):
        self.method, self.template, self.kind = method, template, kind
        self.names = re.findall(r"{\+?(\w+)}", template)
        self.variables = len(self.names)
        pattern = ""
        for piece in re.split(r"({\+?\w+})", template):
            if piece.startswith("{"):
                pattern += "(.+)" if piece.startswith("{+") else "([^/]+)"
            else:
                pattern += re.escape(piece)
        self.pattern = re.compile(pattern)


FILES = {"gmail": "gmail.v1.json", "calendar": "calendar.v3.json", "drive": "drive.v3.json"}
APIS = {name: Api(name, file) for name, file in FILES.items()}


# Routes ------------------------------------------------------------------------------------------


def claims(path):
    """Whether a path belongs to one of Google's interfaces."""
    return api_of(path) is not None


def api_of(path):
    for api in APIS.values():
        root = f"/{api.name}/{api.doc['version']}/"
        prefixes = ("", "/upload", "/resumable/upload")
        if path in api.batch_paths or any(path.startswith(prefix + root) for prefix in prefixes):
            return api
    return None


def route(api, http, path):
    wrong = None
    for candidate in api.routes:
        found = candidate.pattern.fullmatch(path)
        if not found:
            continue
        if candidate.method["httpMethod"] != http:
            wrong = wrong or candidate
            continue
        values = {}
        for name, value in zip(candidate.names, found.groups()):
            try:
                values[name] = unquote(value, errors="strict")
            except UnicodeDecodeError:
                raise Violation(f"the path's {name} is not in UTF-8") from None
        return candidate, values
    if wrong:
        raise Violation(f"{http} {path}: {wrong.method['id']} is {wrong.method['httpMethod']}", 404)
    raise Violation(f"{http} {path}: no method of {api.doc['id']} has this path", 404)


# Values ------------------------------------------------------------------------------------------

RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)?"
)


def valid_date(text):
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text)) and bool(
            datetime.date.fromisoformat(text))
    except ValueError:
        return False


def valid_time(text, zone=True):
    """RFC 3339, 5.6; a second of 60 is a leap second."""
    found = TIME.fullmatch(text)
    if not found or not valid_date(found[1]):
        return False
    if int(found[2]) > 23 or int(found[3]) > 59 or int(found[4]) > 60:
        return False
    if found[6] is None:
        return not zone
    return found[6] in "Zz" or (int(found[6][1:3]) <= 23 and int(found[6][4:]) <= 59)


def valid_bytes(text):
    """base64url, RFC 4648, section 5; the padding may be left out."""
    bare = text.rstrip("=")
    if not re.fullmatch(r"[A-Za-z0-9_-]*", bare) or len(bare) % 4 == 1:
        return False
    return len(text) == len(bare) or len(text) % 4 == 0 and len(text) - len(bare) <= 2


def check_format(schema, text, where):
    format_ = schema.get("format")
    if format_ in ("int64", "uint64"):
        low, high = RANGES[format_]
        need(re.fullmatch(r"-?\d{1,20}", text) and low <= int(text) <= high,
             f"{where}: {text[:80]!r} is no {format_}")
    elif format_ in ("date-time", "google-datetime"):
        need(valid_time(text), f"{where}: {text[:80]!r} is no time of RFC 3339 with a zone")
    elif format_ == "date":
        need(valid_date(text), f"{where}: {text[:80]!r} is no date")
    elif format_ == "byte":
        need(valid_bytes(text), f"{where}: this is not base64url: {text[:80]!r}")
    elif format_ not in (None, "google-fieldmask", "google-duration"):
        raise Broken(f"{where}: unknown format {format_}")


def check_enum(schema, text, where):
    if "enum" in schema:
        need(text in schema["enum"], f"{where}: {text[:80]!r} is none of {schema['enum']}")


def parameter(schema, text, where):
    """The value of a parameter in a path or a query."""
    type_ = schema["type"]
    if type_ == "boolean":
        need(text in ("true", "false"), f"{where}: {text[:80]!r} is neither true nor false")
        return text == "true"
    if type_ == "integer":
        need(re.fullmatch(r"-?\d{1,20}", text), f"{where}: {text[:80]!r} is no integer")
        value = int(text)
        low, high = RANGES[schema.get("format", "int32")]
        low, high = int(schema.get("minimum", low)), int(schema.get("maximum", high))
        need(low <= value <= high, f"{where}: {value} is not between {low} and {high}")
        return value
    if type_ == "number":
        need(re.fullmatch(r"-?\d+(\.\d+)?", text), f"{where}: {text[:80]!r} is no number")
        return float(text)
    check_format(schema, text, where)
    check_enum(schema, text, where)
    if "pattern" in schema:
        need(re.fullmatch(schema["pattern"], text), f"{where}: {text[:80]!r} does not fit")
    return text


# The description of Drive calls these "Output only", while its guide "Share files, folders & drives"
# requires them in the body of permissions.create.
WRITTEN = {("Permission", "emailAddress"), ("Permission", "domain")}


class Checker:
    """Checks JSON by a schema. Requests have no read-only fields and all required ones.

    An upload has its bytes beside the JSON, in place of a required field of bytes.
    """

    def __init__(self, api, method, request, nulls=False, upload=False):
        self.api, self.method, self.request, self.nulls = api, method, request, nulls
        self.upload = upload

    def check(self, schema, value, where):
        # Own stack: documents may be nested as deeply as the parser lets them.
        todo = [(schema, value, where)]
        while todo:
            todo.extend(self.one(*todo.pop()))

    def one(self, schema, value, where):
        if "$ref" in schema:
            schema = self.api.schema(schema["$ref"])
        if value is None and self.nulls:
            return []
        type_ = schema.get("type")
        if type_ == "any":
            return []
        if type_ == "object":
            return self.object(schema, value, where)
        if type_ == "array":
            need(isinstance(value, list), f"{where}: expected a list, got {short(value)}")
            return [(schema["items"], item, f"{where}[{at}]") for at, item in enumerate(value)]
        if type_ == "string":
            need(isinstance(value, str), f"{where}: expected a string, got {short(value)}")
            if where.endswith(".dateTime") and "offset is required unless" in schema.get(
                    "description", ""):
                need(valid_time(value, zone=False), f"{where}: {value[:80]!r} is no time")
            else:
                check_format(schema, value, where)
            check_enum(schema, value, where)
        elif type_ == "boolean":
            need(isinstance(value, bool), f"{where}: expected a boolean, got {short(value)}")
        elif type_ == "integer":
            need(isinstance(value, int) and not isinstance(value, bool),
                 f"{where}: expected an integer, got {short(value)}")
            low, high = RANGES[schema.get("format", "int32")]
            need(low <= value <= high, f"{where}: {value} is not between {low} and {high}")
        elif type_ == "number":
            need(isinstance(value, (int, float)) and not isinstance(value, bool),
                 f"{where}: expected a number, got {short(value)}")
        else:
            raise Broken(f"{where}: unknown type {type_}")
        return []

    def object(self, schema, value, where):
        need(isinstance(value, dict), f"{where}: expected an object, got {short(value)}")
        properties = schema.get("properties", {})
        rest = schema.get("additionalProperties")
        todo = []
        for name, inner in value.items():
            at = f"{where}.{name}"
            if name in properties:
                need(not (self.request and properties[name].get("readOnly"))
                     or (schema.get("id"), name) in WRITTEN, f"{at} is read-only")
                todo.append((properties[name], inner, at))
            elif rest:
                todo.append((rest, inner, at))
            else:
                raise Violation(f"{where}: unknown field {name!r} of {schema.get('id', 'object')}")
        if self.request:
            for name, inner in properties.items():
                uploaded = self.upload and inner.get("format") == "byte"
                if (self.method["id"] in inner.get("annotations", {}).get("required", [])
                        and not uploaded):
                    need(value.get(name) is not None, f"{where}.{name} is missing")
        if schema.get("id") == "EventDateTime" and self.request:
            time = value.get("dateTime")
            if time and not valid_time(time):
                need(value.get("timeZone"), f"{where}.dateTime has neither offset nor timeZone")
        return todo


def short(value):
    return json.dumps(value, ensure_ascii=False)[:80]


# Fields ------------------------------------------------------------------------------------------


def parse_fields(text):
    """`items(id,start/date),etag` as {"items": {"id": {}, "start": {"date": {}}}, "etag": {}}."""
    tokens = re.findall(r"[A-Za-z_][\w-]*|[*/(),]|.", text)
    at = 0
    root = {}

    def fail():
        raise Violation(f"fields: cannot read {text[:200]!r} at {''.join(tokens[at:at + 5])!r}")

    def mark():
        return tokens[at] if at < len(tokens) else None

    stack = [root]
    node = root
    expect = "name"
    while at < len(tokens):
        token = tokens[at]
        if expect == "name":
            if not re.fullmatch(r"[A-Za-z_][\w-]*|\*", token):
                fail()
            node = node.setdefault(token, {})
            expect = "after"
        elif token == "/":
            expect = "name"
        elif token == "(":
            stack.append(node)
            expect = "name"
        elif token == ",":
            node = stack[-1]
            expect = "name"
        elif token == ")" and len(stack) > 1:
            stack.pop()
            node = {}
            expect = "closed"
        else:
            fail()
        if expect == "closed":
            at += 1
            if mark() not in (None, ",", ")"):
                fail()
            expect = "after"
            continue
        at += 1
    if expect != "after" or len(stack) != 1:
        fail()
    return root


def check_fields(api, schema, tree, where="fields"):
    todo = [(schema, tree, where)]
    while todo:
        schema, tree, where = todo.pop()
        while "$ref" in schema or schema.get("type") == "array":
            schema = api.schema(schema["$ref"]) if "$ref" in schema else schema["items"]
        for name, inner in tree.items():
            if name == "*":
                need(not inner, f"{where}: a * has no parts here")
                continue
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if schema.get("type") == "any":
                continue
            need(below, f"Invalid field selection {name} ({where})")
            todo.append((below, inner, f"{where}/{name}"))


def masked(value, tree):
    if not tree or "*" in tree:
        return value
    if isinstance(value, list):
        return [masked(item, tree) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: masked(inner, tree[name]) for name, inner in value.items() if name in tree}


# Calls -------------------------------------------------------------------------------------------

DOMAINS = {"rateLimitExceeded": "usageLimits", "userRateLimitExceeded": "usageLimits",
           "quotaExceeded": "usageLimits", "dailyLimitExceeded": "usageLimits"}
STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
            404: "NOT_FOUND", 409: "ALREADY_EXISTS", 412: "FAILED_PRECONDITION",
            429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
            504: "DEADLINE_EXCEEDED"}


def error(api, status, reason, message, headers=()):
    """An error in Google's form; Gmail adds the code's name."""
    one = {"domain": DOMAINS.get(reason, "global"), "reason": reason, "message": message}
    if status == 401:
        one.update(location="Authorization", locationType="header")
    body = {"error": {"code": status, "message": message, "errors": [one]}}
    if api and api.name == "gmail":
        body["error"]["status"] = STATUSES.get(status, "UNKNOWN")
    return as_json(body, status, headers)


def faulty(api, fault):
    """The answer that a fault gives in place of the method's."""
    headers = [(name, str(value)) for name, value in dict(fault.get("headers", {})).items()]
    if "retry_after" in fault:
        headers.append(("retry-after", str(fault["retry_after"])))
    if "body" in fault:
        type_ = [] if any(name.lower() == "content-type" for name, _ in headers) else [
            ("content-type", "text/html; charset=UTF-8")]
        return Answer(fault.get("status", 200), type_ + headers, fault["body"].encode(), fault)
    status = fault.get("status", 503)
    message = fault.get("message", f"fault {status}")
    answer = error(api, status, fault.get("reason", "backendError"), message, headers)
    answer.fault = fault
    return answer


def serve(request):
    """Answers a request to one of Google's interfaces."""
    api = api_of(request.path)
    if request.path in api.batch_paths:
        return batch(api, request)
    if dict(request.query).get("upload_id"):
        return guarded(api, request, lambda: chunk(api, request))
    return single(api, request)


def single(api, request, batch_token=None):
    return guarded(api, request, lambda: call(api, request, batch_token))


def guarded(api, request, work):
    try:
        return work()
    except Violation as reason:
        request.entry["violation"] = str(reason)
        why = {404: "notFound", 401: "required"}.get(reason.status, "badRequest")
        return error(api, reason.status, why, str(reason))
    except Refused as reason:
        return error(api, reason.status, reason.reason, reason.message, reason.headers)
    except Instead as instead:
        return faulty(api, instead.fault)


def bearer(request):
    """The token of the header Authorization (RFC 6750, 2.1)."""
    value = request.headers.get("authorization")
    if value is None:
        raise Violation("no Authorization header", 401)
    found = re.fullmatch(r"Bearer ([A-Za-z0-9._~+/-]+=*)", value)
    if not found:
        raise Violation("Authorization is not 'Bearer TOKEN'", 401)
    return found[1]


def authorized(request, batch_token):
    text = batch_token if "authorization" not in request.headers and batch_token else None
    token = request.world.oauth.access(text or bearer(request))
    if token is None:
        raise Refused(401, "authError", "Request had invalid authentication credentials.",
                      [("www-authenticate", 'Bearer realm="https://accounts.google.com/", '
                                            'error="invalid_token"')])
    request.entry.update(user=token.user, scopes=request.world.oauth.shown(token.scopes),
                         token=token.number)
    if token.judge:
        request.entry["judge"] = True
    return token


def call(api, request, batch_token):
    found, values = route(api, request.method, request.path)
    method = found.method
    request.id = method["id"]
    request.entry["method"] = request.id
    params, reserved = parameters(api, method, values, request.query)
    request.entry["params"] = params
    token = authorized(request, batch_token)
    upload = found.kind == "upload"
    kind = reserved.get("uploadType")
    if upload:
        need(batch_token is None, "an upload cannot be a part of a batch")
        need(kind in ("media", "multipart", "resumable"), f"uploadType is {kind!r} in an upload")
    else:
        need(kind is None, "uploadType belongs to the paths below /upload/")
    fields = reserved.get("fields")
    tree = None
    if fields is not None:
        need("response" in method, "fields: the method has no response")
        tree = parse_fields(fields)
        check_fields(api, {"$ref": method["response"]["$ref"]}, tree)
    alt = reserved.get("alt", "json")
    if alt == "media":
        need(method.get("supportsMediaDownload"), f"alt=media: {request.id} gives no media")
        need(batch_token is None, "alt=media cannot be a part of a batch")
    need(alt in ("json", "media"), f"alt={alt} is not played")
    media = media_type = body = None
    if upload and kind == "multipart":
        body, media, media_type = related(request)
    elif upload and kind == "media":
        media, media_type = request.body, request.headers.get("content-type")
        need(media_type, "an upload without a content type")
    else:
        body = json_body(method, request, upload)
    if body is not None:
        nulls = method["httpMethod"] == "PATCH"
        Checker(api, method, True, nulls, upload).check(
            {"$ref": method["request"]["$ref"]}, body, "body")
        request.entry["body"] = shortened(body)
    elif "request" in method and not upload:
        # Without a body a required field is missing.
        Checker(api, method, True).check({"$ref": method["request"]["$ref"]}, {}, "body")
    if not set(method["scopes"]) & token.scopes:
        raise insufficient(method)
    check = request.headers.get("x-upload-content-type") if kind == "resumable" else media_type
    if upload and check:
        accepted(method, check)
    if "users/{userId}" in method["path"] and params.get("userId") not in ("me", token.user):
        raise Refused(403, "forbidden", f"Delegation denied for {token.user}")
    made = Call(method=request.id, params=params, body=body, media=media, media_type=media_type,
                user=token.user, scopes=token.scopes, alt=alt, headers=request.headers,
                now=request.world.now(), base=request.world.url)
    if upload and kind == "resumable":
        return begin(api, request, method, made, tree)
    return perform(api, request, method, made, tree)


def insufficient(method):
    scopes = " ".join(method["scopes"])
    return Refused(403, "insufficientPermissions",
                   "Request had insufficient authentication scopes.",
                   [("www-authenticate", 'Bearer realm="https://accounts.google.com/", '
                                         f'error="insufficient_scope", scope="{scopes}"')])


def perform(api, request, method, made, tree):
    """Calls the service's module and checks its answer."""
    request.fault()
    if made.media is not None:
        request.entry["media"] = len(made.media)
        limit = int(method["mediaUpload"]["maxSize"])
        if len(made.media) > limit:
            raise Refused(413, "uploadTooLarge", f"Maximum size is {limit} bytes.")
    with request.world.lock:
        value = request.world.call(api, made)
    answer = packed(api, method, made, tree, value)
    if request.pending:
        if replaces(request.pending):
            raise Instead(request.pending)
        answer.fault = request.pending
    return answer


def packed(api, method, made, tree, value):
    if isinstance(value, Media):
        if not method.get("supportsMediaDownload"):
            raise Broken(f"{method['id']} answers no media")
        return ranged(made, value)
    if made.alt == "media":
        raise Broken(f"{method['id']}: alt=media needs Media")
    if "response" not in method:
        if value not in (None, {}):
            raise Broken(f"{method['id']} has no response")
        return Answer(204, [], b"")
    try:
        Checker(api, method, False).check({"$ref": method["response"]["$ref"]}, value, "answer")
    except Violation as reason:
        raise Broken(f"{method['id']}: {reason}") from None
    return as_json(masked(value, tree) if tree else value)


def ranged(made, media):
    headers = [("content-type", media.type)]
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", made.headers.get("range", ""))
    if not found:
        return Answer(200, headers, media.data)
    first, size = int(found[1]), len(media.data)
    last = min(int(found[2]) if found[2] else size - 1, size - 1)
    if first > last:
        return Answer(416, [("content-range", f"bytes */{size}")], b"")
    headers.append(("content-range", f"bytes {first}-{last}/{size}"))
    return Answer(206, headers, media.data[first:last + 1])


def parameters(api, method, values, query):
    """The method's own parameters, and those of all methods, such as `fields`."""
    own = method.get("parameters", {})
    params = {name: parameter(own[name], value, name) for name, value in values.items()}
    reserved = {}
    for name, text in query:
        if name in own:
            schema = own[name]
            need(schema["location"] == "query", f"{name} belongs into the path")
            if schema.get("repeated"):
                params.setdefault(name, []).append(parameter(schema, text, name))
            else:
                need(name not in params, f"{name} is given twice")
                params[name] = parameter(schema, text, name)
        elif name in api.doc["parameters"] or name == "uploadType":
            need(name not in ("access_token", "oauth_token"), f"a token in the query: {name}")
            need(name not in reserved, f"{name} is given twice")
            if name in api.doc["parameters"]:
                parameter(api.doc["parameters"][name], text, name)
            reserved[name] = text
        else:
            raise Violation(f"{method['id']} has no parameter {name!r}")
    for name, schema in own.items():
        need(not schema.get("required") or name in params, f"{name} is missing")
        if name not in params and "default" in schema and not schema.get("repeated"):
            params[name] = parameter(schema, schema["default"], name)
    return params, reserved


def json_body(method, request, upload):
    if "request" not in method:
        need(not request.body, f"{method['id']} takes no body")
        return None
    if not request.body:
        return None
    value = request.json()
    need(isinstance(value, dict), f"body: expected an object, got {short(value)}")
    return value


def shortened(value):
    """A body for the log, without attachments of megabytes."""
    if isinstance(value, str) and len(value) > 20_000:
        return value[:20_000] + f"... ({len(value)})"
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, dict):
        return {name: shortened(inner) for name, inner in value.items()}
    return value


# Uploads -----------------------------------------------------------------------------------------


def accepted(method, type_):
    bare = type_.split(";")[0].strip().lower()
    for accept in method["mediaUpload"]["accept"]:
        kind, name = accept.split("/")
        if accept == "*/*" or bare == accept or name == "*" and bare.startswith(kind + "/"):
            return
    raise Violation(f"the type {bare!r} of the upload is none of "
                    f"{method['mediaUpload']['accept']}")


def boundary(headers, kind):
    value = headers.get("content-type", "")
    need(value.split(";")[0].strip().lower() == kind, f"content type {value[:80]!r}, not {kind}")
    found = re.search(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', value, re.IGNORECASE)
    need(found, "the content type has no boundary")
    return (found[1] or found[2]).encode()


def newline(data, before):
    """The line break in front of some bytes: vendors also take LF, which their Python client sends."""
    return b"\r\n" if b"\r\n" + before in data else b"\n"


def parts(data, mark):
    """The parts of a multipart body (RFC 2046, 5.1.1) as (headers, content)."""
    end = newline(data, b"--" + mark)
    pieces = (end + data).split(end + b"--" + mark)
    need(len(pieces) >= 2 and pieces[-1].strip() == b"--", "the last boundary is missing")
    for piece in pieces[1:-1]:
        need(piece.startswith(end), "a boundary's line goes on")
        head, _, content = piece.partition(end + end)
        yield header_lines(head), content


def header_lines(head):
    headers = {}
    for line in head.splitlines():
        if not line:
            continue
        name, colon, value = line.partition(b":")
        need(colon, f"no header: {line[:80]!r}")
        headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
    return headers


def related(request):
    found = list(parts(request.body, boundary(request.headers, "multipart/related")))
    need(len(found) == 2, f"a multipart upload has 2 parts, not {len(found)}")
    (head, metadata), (media_head, media) = found
    type_ = head.get("content-type", "").split(";")[0].strip().lower()
    need(type_ == "application/json", f"the first part is {type_!r}, not application/json")
    need(media_head.get("content-type"), "the second part has no content type")
    body = parse_json(metadata, "the first part")
    need(isinstance(body, dict), "the first part is no object")
    coding = media_head.get("content-transfer-encoding", "binary").lower()
    if coding == "base64":
        media = base64.b64decode(media)
    else:
        need(coding in ("binary", "8bit", "7bit"), f"content-transfer-encoding {coding!r}")
    return body, media, media_head["content-type"]


def begin(api, request, method, made, tree):
    """The first request of a resumable upload."""
    request.fault()
    type_ = request.headers.get("x-upload-content-type")
    need(type_, "a resumable upload without X-Upload-Content-Type")
    length = request.headers.get("x-upload-content-length")
    need(length is None or length.isdigit(), f"X-Upload-Content-Length is {length!r}")
    made.media_type = type_
    name = request.world.new_id("upload")
    request.world.uploads[name] = {"api": api, "method": method, "call": made, "tree": tree,
                                   "length": length and int(length), "data": bytearray(),
                                   "path": request.path, "http": request.method}
    query = f"uploadType=resumable&upload_id={quote(name)}"
    answer = Answer(200, [("location", f"{request.world.url}{request.path}?{query}"),
                          ("x-guploader-uploadid", name)], b"")
    answer.fault = request.pending or {}
    return answer


def chunk(api, request):
    """A later request of a resumable upload, with bytes or with the question how many came."""
    query = dict(request.query)
    session = request.world.uploads.get(query["upload_id"])
    if session is None:
        raise Refused(404, "notFound", "Upload session not found.")
    request.id = session["method"]["id"] + ".chunk"
    request.entry["user"] = session["call"].user
    need(request.method == "PUT", f"{request.method} to an upload; its parts are sent by PUT")
    need(request.path == session["path"], "the path is not that of the upload")
    unknown = set(query) - {"uploadType", "upload_id"}
    need(not unknown, f"an upload has no parameters {sorted(unknown)}")
    range_ = request.headers.get("content-range")
    data, size = session["data"], len(request.body)
    total = session["length"]
    if range_ is None:
        first, last, total = 0, size - 1, size
    else:
        found = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", range_)
        need(found, f"Content-Range is {range_!r}")
        if found[3] != "*":
            need(total is None or total == int(found[3]), "Content-Range has another length")
            total = int(found[3])
        if found[1] is None:
            need(size == 0, "bytes with the range *")
            request.fault()
            if total is not None and total == len(data):
                return finish(api, request, session)
            return incomplete(data)
        first, last = int(found[1]), int(found[2])
        need(last - first + 1 == size, f"{range_} with {size} bytes")
        need(total is None or last < total, f"{range_} goes beyond the end")
        if total is None or last + 1 < total:
            need(size % CHUNK == 0, f"a part of {size} bytes, not a multiple of {CHUNK}")
    request.fault()
    need(first <= len(data), f"{len(data)} bytes came so far, and this part begins at {first}")
    data[first:] = request.body
    session["length"] = total
    request.entry["media"] = size
    if total is None or len(data) < total:
        return incomplete(data)
    return finish(api, request, session)


def incomplete(data):
    return Answer(308, [("range", f"bytes=0-{len(data) - 1}")] if data else [], b"")


def finish(api, request, session):
    if "answer" not in session:
        made = session["call"]
        made.media = bytes(session["data"])
        limit = int(session["method"]["mediaUpload"]["maxSize"])
        if len(made.media) > limit:
            raise Refused(413, "uploadTooLarge", f"Maximum size is {limit} bytes.")
        with request.world.lock:
            value = request.world.call(api, made)
        session["answer"] = packed(api, session["method"], made, session["tree"], value)
    stored = session["answer"]
    if request.pending:
        if replaces(request.pending):
            raise Instead(request.pending)
    return Answer(stored.status, stored.headers, stored.body, request.pending)


# Batches -----------------------------------------------------------------------------------------


def batch(api, request):
    request.id = f"{api.name}.batch"
    return guarded(api, request, lambda: batched(api, request))


def batched(api, request):
    request.entry["method"] = request.id
    need(request.method == "POST", f"{request.method} to a batch")
    need(not request.query, "a batch has no parameters")
    token = request.headers.get("authorization") and bearer(request)
    found = list(parts(request.body, boundary(request.headers, "multipart/mixed")))
    need(found, "a batch without calls")
    need(len(found) <= BATCH[api.name], f"{len(found)} calls, more than {BATCH[api.name]}")
    if token:
        authorized(request, None)
    request.fault()
    answers, ids = [], set()
    for headers, content in found:
        need(headers.get("content-type", "").split(";")[0] == "application/http",
             "a part of a batch is application/http")
        name = headers.get("content-id")
        need(name is not None and name not in ids, f"Content-ID {name!r}")
        ids.add(name)
        answers.append((name, inner(api, request, content, token)))
    # The calls of a batch run in any order; so their answers may come.
    body = b""
    for name, answer in answers[1:] + answers[:1]:
        bare = name.strip("<>")
        head = f"--batch_mark\r\nContent-Type: application/http\r\n" \
               f"Content-ID: <response-{bare}>\r\n\r\nHTTP/1.1 {answer.status} X\r\n"
        for header, value in answer.headers:
            head += f"{header}: {value}\r\n"
        head += f"content-length: {len(answer.body)}\r\n\r\n"
        body += head.encode() + answer.body + b"\r\n"
    answer = Answer(200, [("content-type", "multipart/mixed; boundary=batch_mark")],
                    body + b"--batch_mark--\r\n", request.pending)
    if request.pending and replaces(request.pending):
        raise Instead(request.pending)
    return answer


def inner(api, outer, content, token):
    end = newline(content.partition(b"\n")[0] + b"\n", b"")
    head, _, body = content.partition(end + end)
    line, _, rest = head.partition(end)
    found = re.fullmatch(r"([A-Z]+) (/[^ ?#]*)(?:\?([^ #]*))?(?: HTTP/1\.1)?",
                         line.decode("latin-1"))
    need(found, f"a part of a batch begins with {line[:80]!r}")
    # A client that puts the world's URL in place of the host writes its path here too.
    path = found[2].removeprefix(f"/w/{outer.world.number}")
    headers = header_lines(rest)
    if "content-length" in headers:
        length = headers["content-length"]
        need(length.isdigit() and int(length) <= len(body), f"content-length {length!r}")
        body = body[:int(length)]
    request = Request(outer.world, found[1], path, query_pairs(found[3] or ""), headers, body)
    outer.world.entry(request, batch=outer.entry["n"])
    need(api_of(path) is api and path not in api.batch_paths, f"{path} is not of {api.name}")
    answer = single(api, request, token)
    request.entry["status"] = answer.status
    if answer.fault.get("silent") or "cut" in answer.fault or "drip" in answer.fault:
        raise Broken(f"a fault of the connection belongs to {api.name}.batch")
    return answer
