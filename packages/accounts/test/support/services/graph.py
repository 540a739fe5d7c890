"""Microsoft Graph: checks each request and each answer by the description (graph_routes.py), the
token and its scopes, and hands it to the module of its service (outlook.py, outlook_calendar.py,
onedrive.py).

A module's class has a method for each name of a request: "POST /me/messages/{id}/move" is
`post_messages_id_move(call)`, with `call.ids`, `call.query`, `call.body` (an object, or bytes),
`call.user`, `call.headers` and `call.prefer`. It returns an object, `Media`, `None` for 204, or
`(status, object)`, and raises `Refused(status, code, message)`."""

import json
import re
from urllib.parse import unquote, urlencode

import graph_routes as routes
from discovery import bearer
from service import (Answer, Broken, Call, Instead, Media, Refused, Violation, as_json, need,
                     parse_json, query_pairs, replaces)

PREFIX = "/v1.0/"
# Where the bytes of files are, and where parts of uploads go.
CONTENT = "/onedrive-content/"
UPLOAD = "/onedrive-upload/"
READ_MAIL = {"Mail.Read", "Mail.ReadWrite"}
# The scopes of requests (https://learn.microsoft.com/graph/permissions-reference): the first
# pattern that fits. Any one suffices.
SCOPES = [
    (r"POST /me/sendMail", {"Mail.Send"}),
    (r"GET /me/(messages|mailFolders).*", READ_MAIL),
    (r"POST /me/messages/\{id\}/send", {"Mail.Send"}),
    (r"\w+ /me/(messages|mailFolders).*", {"Mail.ReadWrite"}),
    (r"GET /me/(calendar|events).*|POST /me/calendar/getSchedule",
     {"Calendars.Read", "Calendars.ReadWrite"}),
    (r"\w+ /me/(calendar|events).*", {"Calendars.ReadWrite"}),
    (r"GET /me/drive.*", {"Files.Read", "Files.ReadWrite"}),
    (r"\w+ /me/drive.*", {"Files.ReadWrite"}),
]
SERVICES = [(re.compile(r"/me/(messages|mailFolders|sendMail)"), "outlook"),
            (re.compile(r"/me/(calendar|events)"), "outlook_calendar"),
            (re.compile(r"/me/drive"), "onedrive")]


def claims(path):
    return path.startswith(PREFIX)


class Graph:
    def __init__(self, world):
        self.world = world

    def handle(self, request):
        try:
            with self.world.lock:
                answer = self.answered(request)
            if request.pending:
                if replaces(request.pending):
                    raise Instead(request.pending)
                answer.fault = request.pending
            return answer
        except Violation as reason:
            request.entry["violation"] = str(reason)
            return self.error(reason.status, "BadRequest", str(reason))
        except Refused as reason:
            return self.error(reason.status, reason.reason, reason.message, reason.headers)
        except Instead as instead:
            return self.faulty(instead.fault)

    def bytes(self, request, id_, serve):
        """The bytes of a file, in both directions, at an address that is a secret by itself."""
        request.id = id_
        if "authorization" in request.headers:
            request.entry["violation"] = "a token for another server"
        try:
            request.fault()
            with self.world.lock:
                answer = serve(request.path.rsplit("/", 1)[1])
            if isinstance(answer, tuple):
                status, value = answer
                answer = as_json(value, status) if value else Answer(status, [], b"")
            if request.pending:
                if replaces(request.pending):
                    raise Instead(request.pending)
                answer.fault = request.pending
            return answer
        except Violation as reason:
            request.entry["violation"] = str(reason)
            return self.error(reason.status, "BadRequest", str(reason))
        except Refused as reason:
            return self.error(reason.status, reason.reason, reason.message, reason.headers)
        except Instead as instead:
            return self.faulty(instead.fault)

    def content(self, request):
        return self.bytes(request, "onedrive.content", self.world.services["onedrive"].download)

    def upload(self, request):
        drive = self.world.services["onedrive"]
        return self.bytes(request, f"onedrive.upload {request.method}",
                          lambda key: drive.upload(request, key))

    @staticmethod
    def error(status, code, message, headers=()):
        value = {"error": {"code": code, "message": message, "innerError": {
            "date": "2026-03-02T08:00:00", "request-id": "r", "client-request-id": "r"}}}
        return as_json(value, status, headers)

    def faulty(self, fault):
        headers = [(name, str(value)) for name, value in fault.get("headers", {}).items()]
        if "retry_after" in fault:
            headers.append(("retry-after", str(fault["retry_after"])))
        if "body" in fault:
            type_ = ("content-type", "text/html; charset=UTF-8")
            return Answer(fault.get("status", 200), [type_, *headers], fault["body"].encode(),
                          fault)
        answer = self.error(fault.get("status", 503), fault.get("reason", "serviceNotAvailable"),
                            fault.get("message", "fault"), headers)
        answer.fault = fault
        return answer

    def answered(self, request):
        path = "/" + request.path[len(PREFIX):]
        route, ids = routes.find(request.method, path)
        request.id = route.name
        request.entry["method"] = route.name
        token = self.world.oauth.access(bearer(request))
        if token is None:
            raise Refused(401, "InvalidAuthenticationToken", "Lifetime validation failed, the "
                          "token is expired.")
        request.entry.update(user=token.user, token=token.number, judge=token.judge,
                             scopes=self.world.oauth.shown(token.scopes))
        ids = [unquote(one, errors="strict") for one in ids]
        query = routes.query(route, request.query)
        body = self.body(route, request)
        request.entry["params"] = query
        if isinstance(body, dict):
            request.entry["body"] = body
        if route.name == "POST /$batch":
            request.fault()
            return as_json({"responses": [self.part(request, one) for one in body["requests"]]})
        self.check_scopes(route, token)
        request.fault()
        call = Call(method=route.name, ids=ids, query=query, body=body, user=token.user,
                    headers=request.headers, now=self.world.now(), base=self.world.url,
                    scopes=token.scopes, path=request.path)
        return self.sent(route, self.call(route, call), call)

    @staticmethod
    def check_scopes(route, token):
        needed = next((scopes for pattern, scopes in SCOPES
                       if re.fullmatch(pattern, route.name)), None)
        if needed is None:
            raise Broken(f"the scopes of {route.name} are not known")
        if not needed & token.scopes:
            raise Refused(403, "ErrorAccessDenied", "Access is denied. Check credentials and try "
                          "again.")

    def body(self, route, request):
        type_ = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if not request.body and route.type is None:
            return None
        need(route.type is not None, f"{route.name} takes no body")
        if route.type == "*":
            need(type_, "a content without a type")
            return request.body
        if type_ == "text/plain" and route.name in routes.MIME:
            return request.body
        need(type_ == "application/json", f"content type {type_!r} where JSON is sent")
        value = parse_json(request.body)
        if route.body:
            routes.checked(value, route.body, nulls=request.method == "PATCH")
        return value

    def part(self, request, part):
        """A request of a batch, with an entry of its own in the log."""
        unknown = sorted(set(part) - {"id", "method", "url", "headers", "body", "dependsOn"})
        need(not unknown, f"a request of a batch has no fields {unknown}")
        need(part["url"].startswith("/me"), f"the address {part['url']!r} of a batch")
        path, _, query = part["url"].partition("?")
        headers = {name.lower(): value for name, value in part.get("headers", {}).items()}
        headers["authorization"] = request.headers["authorization"]
        inner = type(request)(self.world, part["method"], PREFIX[:-1] + path, query_pairs(query),
                              headers, b"")
        self.world.entry(inner, batch=request.entry["n"])
        answer = self.handle(inner)
        inner.entry["status"] = answer.status
        found = {"id": part["id"], "status": answer.status, "headers": dict(answer.headers)}
        if answer.body:
            try:
                found["body"] = json.loads(answer.body)
            except ValueError:
                found["body"] = answer.body.decode()
        return found

    def call(self, route, call):
        http, path = route.name.split(" ")
        service = next(name for pattern, name in SERVICES if pattern.match(path))
        name = re.sub(r"\W+", "_", path.removeprefix("/me/")).strip("_")
        method = getattr(self.world.services[service], f"{http.lower()}_{name}", None)
        if method is None:
            raise Broken(f"{route.name} is not played")
        return method(call)

    def sent(self, route, value, call):
        status = 200
        if isinstance(value, tuple):
            status, value = value
        if isinstance(value, Answer):
            return value
        if isinstance(value, Media):
            return Answer(200, [("content-type", value.type)], value.data)
        if value is None:
            return Answer(status if status != 200 else 204, [], b"")
        routes.answer(route, value)
        return as_json(self.selected(value, call), status)

    @staticmethod
    def selected(value, call):
        """The fields of `$select`, of an object or of each one in a list."""
        names = call.query.get("$select")
        if not names:
            return value
        expanded = re.findall(r"(?:^|,)(\w+)\(", call.query.get("$expand", ""))
        kept = {*names.split(","), "id", *expanded}

        def cut(one):
            return {name: field for name, field in one.items() if name in kept or "@" in name}

        if "value" in value:
            return {**value, "value": [cut(one) for one in value["value"]]}
        return cut(value)


def page(call, found, most=1000, default=10):
    """A page of a list, with the address of the next one."""
    size = int(call.query.get("$top", default))
    if not 1 <= size <= most:
        raise Refused(400, "ErrorInvalidUrlQuery", f"$top is not between 1 and {most}")
    first = int(call.query.get("$skip", "0"))
    answer = {"value": found[first:first + size]}
    if first + size < len(found):
        query = {**call.query, "$skip": str(first + size)}
        answer["@odata.nextLink"] = f"{call.base}{call.path}?{urlencode(query)}"
    return answer


class Filter:
    """A filter: comparisons with `and` between them, and `x/any(c:c eq 'y')`."""

    TOKEN = re.compile(r"\s*(?:(and)\b|(\w+)/any\((\w+):\3 eq '((?:[^']|'')*)'\)|"
                       r"([\w/]+) (eq|ne|ge|gt|le|lt) ('(?:[^']|'')*'|[\w:.+-]+))")

    def __init__(self, text, code="ErrorInvalidUrlQueryFilter"):
        self.names, self.tests, at, joined = [], [], 0, True
        while at < len(text):
            found = self.TOKEN.match(text, at)
            if not found or bool(found[1]) == joined:
                raise Refused(400, code, f"The filter {text!r} is not understood.")
            at, joined = found.end(), bool(found[1])
            if found[2]:
                self.names.append(found[2])
                self.tests.append(("any", found[2], found[4].replace("''", "'")))
            elif found[5]:
                self.names.append(found[5])
                self.tests.append((found[6], found[5], self.value(found[7])))
        if joined:
            raise Refused(400, code, "The filter ends with and.")

    @staticmethod
    def value(text):
        if text.startswith("'"):
            return text[1:-1].replace("''", "'")
        return {"true": True, "false": False}.get(text, text)

    def __call__(self, one):
        return all(self.test(one, *test) for test in self.tests)

    @staticmethod
    def test(one, how, name, wanted):
        value = one
        for part in name.split("/"):
            value = (value or {}).get(part)
        if how == "any":
            return wanted.lower() in [text.lower() for text in value or []]
        if value is None:
            return how == "ne"
        if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
            value, wanted = value.rstrip("Z")[:19], wanted.rstrip("Z")[:19]
        return {"eq": value == wanted, "ne": value != wanted, "ge": value >= wanted,
                "gt": value > wanted, "le": value <= wanted, "lt": value < wanted}[how]
