"""A server for tests that plays the services of Google, Microsoft and HubSpot, with OAuth 2.

It refuses every request that the vendor's published description does not allow, and checks its own
answers by the same description: Google's discovery documents (discovery.py), Microsoft's package
(graph.py) and HubSpot's (hubspot.py). OAuth is in oauth.py and entra.py. State belongs to a world,
so that tests run at once.

    POST /worlds              a seed (below): {"url": "http://127.0.0.1:PORT/w/7", ...}
    ANY  /w/7/...             the vendors' interfaces: the vendor's path, whatever the host was, so
                              https://gmail.googleapis.com/gmail/v1/... is /w/7/gmail/v1/...
    POST /w/7/control/faults  [fault]: adds faults; DELETE removes all of them
    GET  /w/7/control/log     [entry], without the judge's calls; DELETE empties it
    GET  /w/7/control/secrets all tokens, codes and keys so far
    POST /w/7/control/clock   {"advance": seconds}: the world's clock, by which tokens expire
    POST /w/7/control/token   {"user", "scopes", "expires_in"}: {"access_token", "refresh_token"}
    POST /w/7/control/browser {"user", "answer": "allow" | "deny" | [scopes that are granted]}: who
                              answers the page of consent from now on, and how
    POST /w/7/control/seed    {"gmail": ..., ...}: calls `add(seed)` of these services
    GET  /w/7/control/judge/gmail.messages?user=ann@example.com
                              the state as Google's own client reads it (judge.py)

A seed is an object, and each field may be left out:

    users      {"ann@example.com": {"name": "Ann"}}: the people; default: ann and bob@example.com
    clients    [{"id", "secret", "redirects": [url]}]: OAuth clients. A redirect of 127.0.0.1 or
               [::1] fits with any port (RFC 8252, 7.3). Default: "client", "client-secret",
               "http://127.0.0.1"
    browser    as above; default: ann, "allow"
    expires_in seconds that an access token lasts; default 3600
    rotate     true: each refresh gives a new refresh token, and using an old one revokes the grant
    hubspot_tokens  {"pat-1": [scopes]}: the tokens of private apps; scopes may be "all"
    gmail, calendar, drive, hubspot, outlook, outlook_calendar, onedrive  data for that service's
               module, in its own form
    echo       true: Google's services give the smallest valid answers, for tests of this server

The answer to POST /worlds has `url`, `tokens` ({user: access token with all scopes, which lasts}),
`refresh_tokens` ({user: refresh token of the first client, with all scopes}), `service_account`
(the key file of a Google service account that may act for all users) and `client`.

A fault is {"method": pattern, ...}, where the pattern fits ids as in the log ("gmail.users.*",
"gmail.batch", "oauth.token", "hubspot.*"), with

    times      how many calls it hits, default 1; null: all
    skip       how many calls it leaves alone first, default 0
    status, reason, message, headers   an error in the vendor's form ("oauth.token": reason is the
               error code; "{token}" in a message is the request's token)
    retry_after  the header, in seconds or a date
    applied    true: the call takes effect, and only its answer is the fault
    body       this text in place of the error in the vendor's form; status defaults to 200
    delay      seconds before the answer
    cut        the connection ends after so many bytes of the answer; 0: no answer. Without
               `applied` the call has no effect
    silent     true: no answer, until the client hangs up
    drip       seconds between two bytes of the answer
    kept       of a part of an upload to OneDrive so many bytes arrive

An entry of the log is {"n", "at", "method", "user", "status", "params", "body", "media" (bytes),
"scopes" (of the token), "token" (its number), "fault", "batch" (the n of the batch), "agent"} and,
for a request that the description does not allow, "violation": the reason. A fault of the server
itself is in "broken". Skillbook.Test.Services fails a test that has either.


A service's module
------------------

One class for each service of Google, found by its file: gmail.py has `Gmail`, gcalendar.py
`Calendar`, gdrive.py `Drive`. Calls of a world run one at a time, so it needs no lock.

    from service import Media, Refused

    class Gmail:
        def __init__(self, world):          # world.seed["gmail"] is the seed's part, or {}
            self.world = world
            self.labels = {}                # by user: a world has several people
            self.add(world.seed["gmail"])

        def add(self, seed):                # POST control/seed
            for user, labels in seed.get("labels", {}).items(): ...

        # gmail.users.labels.get: the id without the service's name, "." written as "_"
        def users_labels_get(self, call):
            label = self.labels[call.user].get(call.params["id"])
            if label is None:
                raise Refused(404, "notFound", "Requested entity was not found.")
            return label

`call` has
    method   "gmail.users.labels.get"
    params   path and query, checked: int, bool, float, str, lists of them if repeated; defaults
             that the description declares are filled in; others that were not given are missing
    body     the JSON object, checked, or None. Unknown fields, wrong types and missing required
             fields never arrive here. A null arrives only in a patch or an update
    media, media_type   bytes and type of an upload (simple, multipart or resumable), or None
    user     address of the token's person; `users/me` is left as "me" in params
    scopes   set of the token's scopes, one of which the method allows
    alt      "json" or "media"
    headers  of the request, names in lower case
    now      the world's clock, Unix seconds (float)
    base     the URL of the world

A method returns a dict (all of the fields: a `fields` mask is applied later), None where the
description has no response, or `Media(bytes, "text/plain")` for alt=media and exports; ranges are
cut out later. It raises `Refused(status, reason, message)`, answered in Google's form. A wrong
answer, by the response's schema, is an error of the test. `world.new_id("m")` gives "m1", "m2", ...
and `world.log` is the log. A method that is not there is answered by 501 and fails the test.

A resumable upload's `Location` is below the world's URL, which is the account's `url:`; a client
that replaces the host of addresses leaves addresses below that URL alone.

hubspot.py has `HubSpot`, which sees raw requests and does its own checks by HubSpot's models:

    class HubSpot:
        def __init__(self, world): ...
        def handle(self, request):          # paths below /crm/ and /account-info/
            ...                             # request.method, .path, .query [(name, value)],
                                            # .headers, .body (bytes), .json()
            request.id = "hubspot.contacts.search"     # for the log and faults; set it first,
            request.fault()                            # then this, which raises what a fault says
            scopes = request.hubspot_scopes()          # of its private app; raises Refused(401)
            raise Violation("an unknown property")     # not allowed by the description
            raise Refused(404, "OBJECT_NOT_FOUND", "...")   # what HubSpot itself would answer
            return 200, {...}                          # answered in JSON
        def error(self, refused): ...       # HubSpot's form of an error, as a dict
"""

import gzip
import json
import select
import socket
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Packages come first: `import hubspot` is the vendor's, not the file beside this one.
sys.path.append(sys.path.pop(0))

from judge import judge
from service import Broken, Request, Violation, as_json, query_pairs
from world import World

LIMIT = 200 * 1024 * 1024


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_args):
        pass

    def read(self):
        """The body, by its length or in chunks (RFC 9112, 6 and 7.1)."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            pieces = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                if size == 0:
                    while self.rfile.readline().strip():
                        pass
                    return b"".join(pieces)
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
        size = int(self.headers.get("content-length", "0"))
        if size > LIMIT:
            raise Broken(f"a body of {size} bytes")
        return self.rfile.read(size)

    def run(self):
        try:
            body = self.read()
            path, _, query = self.path.partition("?")
            pieces = path.split("/", 3)
            if path == "/worlds" and self.command == "POST":
                return self.new_world(body)
            world = self.server.worlds.get(pieces[2]) if pieces[1:2] == ["w"] else None
            if world is None or len(pieces) < 4:
                return self.send_all(as_json({"error": f"no world at {path}"}, 404))
            if pieces[3].startswith("control/"):
                return self.control(world, pieces[3][len("control/"):], query, body)
            self.play(world, "/" + pieces[3], query, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = run

    def new_world(self, body):
        try:
            answer = as_json(self.server.new_world(json.loads(body)))
        except Exception:
            answer = as_json({"error": traceback.format_exc()}, 500)
        self.send_all(answer)

    def control(self, world, name, query, body):
        try:
            fields = dict(query_pairs(query))
            if name.startswith("judge/"):
                token = world.judge_token(fields.pop("user", next(iter(world.users))))
                value = judge(name[len("judge/"):], world.url, token, fields)
            else:
                value = world.control(self.command, name, json.loads(body or b"null"), fields)
            answer = as_json(value)
        except Exception:
            answer = as_json({"error": traceback.format_exc()}, 500)
        self.send_all(answer)

    def play(self, world, path, query, body):
        headers = {}
        for name, value in self.headers.items():
            headers[name.lower()] = value
        request = Request(world, self.command, path, [], headers, body)
        try:
            try:
                request.query = query_pairs(query)
            except Violation as reason:
                world.entry(request, violation=str(reason), status=400)
                answer = as_json({"error": str(reason)}, 400)
            else:
                answer = world.serve(request)
        except Exception:
            # A fault of this server is none of the client's; the test shows it.
            text = traceback.format_exc()
            print(text, file=sys.stderr, flush=True)
            world.broken.append(text)
            answer = as_json({"error": {"code": 501, "message": text}}, 501)
        self.send_all(answer)

    def send_all(self, answer):
        fault = answer.fault
        time.sleep(fault.get("delay", 0))
        if fault.get("silent"):
            return self.until_hung_up()
        if fault.get("cut") == 0:
            return self.hang_up()
        body = answer.body
        headers = list(answer.headers)
        if "gzip" in self.headers.get("accept-encoding", "") and len(body) > 1024 and not fault:
            body = gzip.compress(body, 1)
            headers.append(("content-encoding", "gzip"))
        if answer.status not in (204, 304):
            headers.append(("content-length", str(len(body))))
        data = self.message(answer.status, headers, body)
        if "cut" in fault:
            if fault["cut"] >= len(data):
                # All of it arrives, so the client must not use this connection again.
                data = self.message(answer.status, [*headers, ("connection", "close")], body)
                self.wfile.write(data)
            else:
                self.wfile.write(data[:fault["cut"]])
            return self.hang_up()
        if "drip" in fault:
            for byte in data:
                self.wfile.write(bytes([byte]))
                time.sleep(fault["drip"])
            return None
        self.wfile.write(data)

    def message(self, status, headers, body):
        head = f"HTTP/1.1 {status} {self.responses.get(status, ('X',))[0]}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
        return head.encode("latin-1") + (b"" if self.command == "HEAD" else body)

    def until_hung_up(self):
        self.close_connection = True
        select.select([self.connection], [], [], 3600)

    def hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048

    def __init__(self, address, handler):
        super().__init__(address, handler)
        self.worlds, self.lock = {}, threading.Lock()

    def new_world(self, seed):
        with self.lock:
            number = len(self.worlds) + 1
            self.worlds[str(number)] = None
        world = World(number, f"http://127.0.0.1:{self.server_port}", seed)
        self.worlds[str(number)] = world
        return world.description()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
