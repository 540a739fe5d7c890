"""A server of all vendors for tests. It plays scripts, checks every request by the vendor's types and
rules, and builds every answer from the vendor's types.

    POST /scripts         {"vendor", "platform", "key", "keeps", "answers": [answer]}: the number
                          of a script; the platform is vertex, bedrock or none
    ANY  /s/NUMBER/...    the vendor's server, whose next answer is the script's
    GET  /scripts/NUMBER  {"requests": [body], "refused": [reason], "sent": [bytes]}
    POST /tools           {"vendor", "tools": [tool]}: [reason or null]

An answer is one of answers.py, or {"status", "headers", "error": {"type", "message"}}. Fields for
faults: `whole`, not streamed; `cut`, the connection breaks after so many bytes of the body; `piece`
and `pause`, so many bytes at once and seconds between them; `insert`, [[place, text]], bytes in
Latin-1 before the event at that place; `unknown`, every event has unknown fields; `silent`.
With `keeps` each request has to have all data of the vendor that the answers before it had.

A script for requests that are made again, and not known before, has `place`, `found` and `told`,
patterns, and `faults`. The largest number that `place` finds in a request is that of its answer;
the answer is the same each time, with the usage of the request. Each request takes a fault: null,
fields of the answer, or an answer of its own. Its record has no bodies, but {"played": number,
"refused", "found", "told", "bytes", "same", "low"}: what `found` finds in calls with their results,
and `told` in whole prompts; the bytes of the prompts whose next one was not compacted, to less than
80%, and those that were the same at its start; and for each prompt with less than 98% of the one
before, this share and how long it is beside that.
"""

import json
import re
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import platforms
import rules
from answers import STREAMS, WHOLE
from anthropic.types.beta_error_response import BetaErrorResponse
from checks import Refused, built, check_request, check_tool, need
from openai.types.shared import ErrorObject

UNKNOWN = {"zz_unknown": {"a": [1, None, {"b": "c"}]}}


class Script:
    def __init__(self, fields):
        self.vendor = fields["vendor"]
        self.platform = fields.get("platform")
        self.key = fields.get("key")
        self.keeps = fields.get("keeps", False)
        self.answers = fields["answers"]
        self.lock = threading.Lock()
        self.played, self.issued, self.bodies = 0, [], []
        self.requests, self.refused, self.sent = [], [], []
        self.place = fields.get("place")
        self.pattern, self.tell = fields.get("found"), fields.get("told")
        self.faults = fields.get("faults", [])
        self.found, self.told = set(), set()
        self.prompt, self.bytes, self.same, self.low = "", 0, 0, []

    def record(self):
        if self.place:
            return {"requests": [], "played": self.played, "refused": self.refused,
                    "found": sorted(self.found), "told": sorted(self.told),
                    "bytes": self.bytes, "same": self.same, "low": self.low}
        return {"requests": self.bodies, "refused": self.refused, "sent": self.sent}

    def check(self, path, headers, text):
        rules.check_head(self.vendor, None if self.platform else path, headers)
        body = json.loads(text)
        if self.platform:
            body = platforms.request(self.vendor, self.platform, path, body)
        check_request(self.vendor, body)
        rules.check_body(self.vendor, body, self.issued)
        if self.keeps:
            need(rules.given_back(self.vendor, body) == self.issued, "data is missing or moved")

    def next(self, path, headers, text, signed):
        with self.lock:
            if not self.place:
                self.bodies.append(text)
            try:
                if self.key is not None and self.key_of(signed, headers, text) != self.key:
                    return {"status": 401, "error": error(self.vendor, 401, "wrong key")}
                self.check(path, headers, text)
            except (Refused, json.JSONDecodeError) as reason:
                self.refused.append(str(reason))
                return {"status": 400, "error": error(self.vendor, 400, str(reason))}
            if self.place:
                return self.answer_of(text)
            if self.played >= len(self.answers):
                self.refused.append("more requests than answers")
                return {"status": 400, "error": error(self.vendor, 400, "no more answers")}
            answer = self.answers[self.played]
            self.played += 1
            if "error" in answer:
                fields = answer["error"]
                named = error(self.vendor, answer["status"], fields["message"], fields)
                return {**answer, "error": named}
            return answer

    def answer_of(self, text):
        body = json.loads(text)
        for result in rules.results(self.vendor, body):
            self.found.update(re.findall(self.pattern, result))
        prompt = rules.prompt(self.vendor, body)
        self.told.update(re.findall(self.tell, prompt))
        if self.prompt:
            same = same_start(self.prompt, prompt)
            if len(prompt) > 0.8 * len(self.prompt):
                self.bytes, self.same = self.bytes + len(self.prompt), self.same + same
            if same < 0.98 * len(self.prompt):
                shares = [same / len(self.prompt), len(prompt) / len(self.prompt)]
                self.low.append([round(share, 3) for share in shares])
        self.prompt = prompt
        place = max(int(number) for number in re.findall(self.place, text))
        usage = {"usage": {"prompt": len(text) // 4}}
        fault = self.faults[self.played] if self.played < len(self.faults) else None
        self.played += 1
        if fault and "error" in fault:
            named = error(self.vendor, fault["status"], fault["error"]["message"], fault["error"])
            return {**fault, "error": named}
        return {**self.answers[place], **usage, **(fault or {})}

    def key_of(self, path, headers, text):
        if self.platform:
            return platforms.key_of(headers, path, text)
        return rules.key_of(self.vendor, headers)

    def body(self, answer):
        """The pieces of the body."""
        if answer.get("whole"):
            return [json.dumps(WHOLE[self.vendor](answer)).encode()]
        events = list(STREAMS[self.vendor](answer))
        if "cut" not in answer:
            objects = [event for event in events if event != "[DONE]"]
            self.issued += rules.issued_by(self.vendor, answer, objects)
        pieces = [as_event(self.vendor, event, answer.get("unknown")) for event in events]
        for place, text in reversed(answer.get("insert", [])):
            pieces.insert(place, text.encode("latin-1"))
        return list(platforms.stream(pieces)) if self.platform == "bedrock" else pieces


def same_start(one, other):
    """How many characters at the start of both are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if other.startswith(one[:middle]) else (low, middle - 1)
    return low


def as_event(vendor, event, unknown):
    if event == "[DONE]":
        return b"data: [DONE]\n\n"
    if unknown:
        event = {**event, **UNKNOWN}
        for name in ("delta", "item", "content_block", "usage", "usageMetadata"):
            if isinstance(event.get(name), dict):
                event[name] = {**event[name], **UNKNOWN}
    data = json.dumps(event, ensure_ascii=False)
    name = f"event: {event['type']}\n" if vendor in ("anthropic", "responses") else ""
    return f"{name}data: {data}\n\n".encode()


STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}
TYPES = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}


def error(vendor, status, message, fields=None):
    fields = fields or {}
    if vendor == "anthropic":
        type_ = fields.get("type") or TYPES.get(status, "api_error")
        value = {"type": "error", "error": {"type": type_, "message": message}}
        return built(BetaErrorResponse, value)
    if vendor == "gemini":
        name = STATUSES.get(status, "UNAVAILABLE")
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": fields["delay"]}] if "delay" in fields else []
        return {"error": {"code": status, "message": message, "status": name, "details": details}}
    type_ = fields.get("type") or TYPES.get(status, "server_error")
    value = {"message": message, "type": type_, "param": None, "code": fields.get("code")}
    return {"error": built(ErrorObject, value)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    scripts = {}

    def log_message(self, *_args):
        pass

    def read(self):
        """The body, or None of a client that was gone before its end."""
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(length)
        return body.decode() if len(body) == length else None

    def json(self, value, status=200, headers=()):
        self.send_all(status, "application/json", headers, json.dumps(value).encode())

    def send_all(self, status, type_, headers, body):
        self.send_response(status)
        # A client that is not told would keep the connection.
        self.close_connection = True
        own = [("content-type", type_), ("content-length", len(body)), ("connection", "close")]
        for name, value in [*own, *headers]:
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.json(self.scripts[int(self.path.split("/")[2])].record())

    def do_POST(self):
        # A fault of this server is none of the client's. A client may be gone at any time.
        try:
            text = self.read()
            if text is not None:
                self.answer(text)
        except ConnectionError:
            self.close_connection = True
        except Exception:
            number = self.path.split("/")[2]
            if self.path.startswith("/s/"):
                self.scripts[int(number)].refused.append(traceback.format_exc())
            raise

    def answer(self, text):
        if self.path == "/scripts":
            number = len(self.scripts) + 1
            self.scripts[number] = Script(json.loads(text))
            return self.json(number)
        if self.path == "/tools":
            return self.json([self.tool(json.loads(text)["vendor"], tool)
                              for tool in json.loads(text)["tools"]])
        _, _, number, rest = self.path.split("/", 3)
        script = self.scripts[int(number)]
        headers = {name.lower(): value for name, value in self.headers.items()}
        # A signature is of the whole path.
        signed = script.platform == "bedrock" and self.path
        self.play(script, script.next("/" + rest, headers, text, signed or "/" + rest))

    @staticmethod
    def tool(vendor, tool):
        try:
            check_tool(vendor, tool)
        except Refused as reason:
            return str(reason)

    def play(self, script, answer):
        self.close_connection = True
        if "error" in answer:
            return self.json(answer["error"], answer["status"], answer.get("headers", []))
        pieces = script.body(answer)
        if answer.get("whole"):
            return self.send_all(200, "application/json", [], b"".join(pieces))
        self.send_response(200)
        bedrock = script.platform == "bedrock"
        self.send_header("content-type", "application/vnd.amazon.eventstream" if bedrock
                         else "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        body = b"".join(pieces)
        script.sent.append(len(body))
        if "piece" in answer:
            size = answer["piece"]
            pieces = [body[at : at + size] for at in range(0, len(body), size)]
        if "cut" in answer:
            pieces = [body[: answer["cut"]]]
        for piece in pieces:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            time.sleep(answer.get("pause", 0))
        if answer.get("silent"):
            self.rfile.read(1)
        if "cut" not in answer:
            self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        # Clients also go before their first line, or while the last one is flushed.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
