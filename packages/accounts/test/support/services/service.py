"""Names that the modules of services share."""

import json
import re
from urllib.parse import unquote_plus


class Violation(Exception):
    """A request that the vendor's description does not allow; it fails the test."""

    def __init__(self, reason, status=400):
        super().__init__(reason)
        self.status = status


class Refused(Exception):
    """A proper request that the vendor refuses, such as for a thing that is not there."""

    def __init__(self, status, reason, message, headers=()):
        super().__init__(message)
        self.status, self.reason, self.message, self.headers = status, reason, message, headers


class Broken(Exception):
    """A fault of this server or of a service's module."""


class Media:
    def __init__(self, data, type_):
        self.data, self.type = data, type_


class Answer:
    """A response; `fault` changes how it is sent."""

    def __init__(self, status, headers, body, fault=None):
        self.status, self.headers, self.body, self.fault = status, list(headers), body, fault or {}


class Instead(Exception):
    """A fault that takes the place of an answer."""

    def __init__(self, fault):
        super().__init__("fault")
        self.fault = fault


def need(condition, reason):
    if not condition:
        raise Violation(reason)


def as_json(value, status=200, headers=()):
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status, [("content-type", "application/json; charset=UTF-8"), *headers], body)


def parse_json(data, where="the body"):
    """JSON without what parsers read differently: names given twice, NaN, bytes outside UTF-8."""

    def unique(pairs):
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        need(twice is None, f"{where} has the name {twice!r} twice")
        return dict(pairs)

    def constant(name):
        raise Violation(f"{where} has {name}, which is not JSON")

    try:
        return json.loads(data.decode(), object_pairs_hook=unique, parse_constant=constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as reason:
        raise Violation(f"{where} is not JSON in UTF-8: {reason}") from None


def query_pairs(text):
    """The pairs of a query or a form, in order."""
    pairs = []
    for piece in text.split("&") if text else []:
        need("=" in piece, f"{piece[:80]!r} has no =")
        need(re.fullmatch(r"(?:[A-Za-z0-9\-._~!$'()*+,;:@/?=]|%[0-9A-Fa-f]{2})*", piece),
             f"{piece[:80]!r} is not encoded (RFC 3986, 3.4)")
        name, _, value = piece.partition("=")
        try:
            pairs.append((unquote_plus(name, errors="strict"),
                          unquote_plus(value, errors="strict")))
        except UnicodeDecodeError:
            raise Violation(f"{piece[:80]!r} is not in UTF-8") from None
    return pairs


class Call:
    """A checked call of a method."""

    def __init__(self, **fields):
        self.method, self.params, self.body = None, {}, None
        self.media = self.media_type = None
        self.user, self.scopes, self.alt, self.headers = None, set(), "json", {}
        self.now, self.base = 0.0, ""
        self.__dict__.update(fields)


class Request:
    """A request as it came, its path without the world's part."""

    def __init__(self, world, method, path, query, headers, body):
        self.world, self.method, self.path, self.query = world, method, path, query
        self.headers, self.body = headers, body
        self.id, self.pending, self.entry = None, None, {}

    def json(self):
        type_ = self.headers.get("content-type", "").split(";")[0].strip().lower()
        need(type_ == "application/json", f"content type {type_!r} where JSON is sent")
        return parse_json(self.body)

    def fault(self):
        """Raises the fault of this request's id that comes before the call, if there is one."""
        self.entry["method"] = self.id
        if self.entry.get("judge"):
            return
        self.pending = self.world.next_fault(self.id)
        if self.pending:
            self.entry["fault"] = True
            if "{token}" in self.pending.get("message", ""):
                token = self.headers.get("authorization", "").removeprefix("Bearer ")
                message = self.pending["message"].replace("{token}", token)
                self.pending = {**self.pending, "message": message}
            if replaces(self.pending) and not self.pending.get("applied"):
                raise Instead(self.pending)

    def hubspot_scopes(self):
        return self.world.oauth.hubspot_scopes(self)


def replaces(fault):
    """Whether a fault takes the answer's place; others only send it differently."""
    return "status" in fault or "body" in fault or fault.get("silent") or fault.get("cut") == 0
