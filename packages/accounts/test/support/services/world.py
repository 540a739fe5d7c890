"""The state of a test: its services, tokens, clock, faults and log."""

import fnmatch
import importlib
import importlib.util
import threading
import time

import discovery
import entra
import graph
from echo import Echo
from oauth import KNOWN, OAuth
from service import Broken, Refused, Violation, as_json

# The class of each service, and its file.
MODULES = {"gmail": ("gmail", "Gmail"), "calendar": ("gcalendar", "Calendar"),
           "drive": ("gdrive", "Drive"), "hubspot": ("hubspot", "HubSpot"),
           "outlook": ("outlook", "Outlook"),
           "outlook_calendar": ("outlook_calendar", "OutlookCalendar"),
           "onedrive": ("onedrive", "OneDrive")}
HUBSPOT = ("/crm/", "/account-info/")
FIELDS = {"users", "clients", "browser", "expires_in", "rotate", "hubspot_tokens", "delegated",
          "echo", *MODULES}
FAULT = {"method", "times", "skip", "status", "reason", "message", "headers", "retry_after",
         "applied", "body", "delay", "cut", "silent", "drip", "kept"}


def load():
    """The classes whose files are there, by path: a package has the name of hubspot.py."""
    classes = {}
    for name, (file, class_) in MODULES.items():
        path = f"{__file__.rsplit('/', 1)[0]}/{file}.py"
        spec = importlib.util.spec_from_file_location(f"{file}_service", path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except FileNotFoundError:
            continue
        classes[name] = getattr(module, class_)
    return classes


CLASSES = load()


class World:
    def __init__(self, number, base, seed):
        unknown = sorted(set(seed) - FIELDS)
        if unknown:
            raise Broken(f"a seed has no fields {unknown}")
        self.number, self.url = number, f"{base}/w/{number}"
        self.seed = {**{name: {} for name in MODULES}, **seed}
        self.users = seed.get("users") or {"ann@example.com": {"name": "Ann"},
                                           "bob@example.com": {"name": "Bob"}}
        self.lock = threading.RLock()
        self.ahead = 0.0
        self.counts, self.faults, self.log, self.uploads, self.broken = {}, [], [], {}, []
        self.oauth = OAuth(self)
        self.entra, self.graph = entra.Entra(self), graph.Graph(self)
        self.services = {}
        for name, class_ in CLASSES.items():
            self.services[name] = class_(self)
        if seed.get("echo"):
            for name in discovery.APIS:
                self.services[name] = Echo(self, discovery.APIS[name])

    def description(self):
        """The answer to POST /worlds."""
        client = next(iter(self.oauth.clients.values()))
        made = {user: self.oauth.control_token(
            {"user": user, "scopes": "all", "expires_in": 10**9}) for user in self.users}
        return {"url": self.url, "service_account": self.oauth.account,
                "client": {"id": client["id"], "secret": client.get("secret")},
                "tokens": {user: one["access_token"] for user, one in made.items()},
                "refresh_tokens": {user: one["refresh_token"] for user, one in made.items()}}

    # For services

    def now(self):
        return time.time() + self.ahead

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1
            return self.counts[name]

    def new_id(self, prefix):
        return f"{prefix}{self.count(prefix)}"

    def call(self, api, call):
        service = self.services.get(api.name)
        name = call.method.split(".", 1)[1].replace(".", "_")
        method = getattr(service, name, None)
        if method is None:
            raise Broken(f"{call.method} is not played")
        return method(call)

    # Log and faults

    def entry(self, request, **fields):
        with self.lock:
            entry = {"n": self.count("entry"), "at": self.now(), "method": None, "user": None,
                     "http": request.method, "path": request.path,
                     "agent": request.headers.get("user-agent"), **fields}
            request.entry = entry
            self.log.append(entry)

    def next_fault(self, id_):
        with self.lock:
            for fault in self.faults:
                if not fnmatch.fnmatchcase(id_, fault["method"]):
                    continue
                if fault.get("skip", 0) > 0:
                    fault["skip"] -= 1
                    continue
                times = fault.get("times", 1)
                if times is None or times > 0:
                    if times:
                        fault["times"] = times - 1
                    return fault
            return None

    def serve(self, request):
        """Answers a request to a vendor's interface."""
        self.entry(request)
        if request.path in OAuth.PATHS:
            answer = self.oauth.handle(request)
        elif discovery.claims(request.path):
            answer = discovery.serve(request)
        elif entra.PATH.fullmatch(request.path):
            answer = self.entra.handle(request)
        elif graph.claims(request.path):
            answer = self.graph.handle(request)
        elif request.path.startswith(graph.CONTENT):
            answer = self.graph.content(request)
        elif request.path.startswith(graph.UPLOAD):
            answer = self.graph.upload(request)
        elif request.path.startswith(HUBSPOT) and "hubspot" in self.services:
            answer = self.hubspot(request)
        else:
            reason = f"{request.method} {request.path}: no service has this path"
            request.entry["violation"] = reason
            answer = as_json({"error": reason}, 404)
        request.entry["status"] = answer.status
        if "batch" not in request.entry and request.entry.get("judge"):
            with self.lock:
                judged = request.entry["n"]
                self.log = [entry for entry in self.log
                            if entry["n"] != judged and entry.get("batch") != judged]
        return answer

    def hubspot(self, request):
        service = self.services["hubspot"]
        try:
            with self.lock:
                status, value = service.handle(request)
            answer = as_json(value, status)
            if request.pending:
                if discovery.replaces(request.pending):
                    raise discovery.Instead(request.pending)
                answer.fault = request.pending
            return answer
        except Violation as reason:
            request.entry["violation"] = str(reason)
            refused = Refused(reason.status, "VALIDATION_ERROR", str(reason))
        except Refused as reason:
            refused = reason
        except discovery.Instead as instead:
            fault = instead.fault
            if "body" in fault:
                return discovery.faulty(None, fault)
            headers = [(name, str(value)) for name, value in fault.get("headers", {}).items()]
            if "retry_after" in fault:
                headers.append(("retry-after", str(fault["retry_after"])))
            refused = Refused(fault.get("status", 503), fault.get("reason", "INTERNAL_ERROR"),
                              fault.get("message", "fault"), headers)
            answer = as_json(service.error(refused), refused.status, refused.headers)
            answer.fault = fault
            return answer
        return as_json(service.error(refused), refused.status, refused.headers)

    # Control

    def control(self, http, name, fields, query):
        with self.lock:
            work = getattr(self, f"{http.lower()}_{name}", None)
            if work is None:
                raise Broken(f"no control {http} {name}")
            return work(fields, query)

    def post_faults(self, faults, _query):
        for fault in faults:
            unknown = sorted(set(fault) - FAULT)
            if unknown or "method" not in fault:
                raise Broken(f"a fault has no fields {unknown}, and a method")
            self.faults.append(dict(fault))
        return {}

    def delete_faults(self, _fields, _query):
        self.faults.clear()
        return {}

    def get_log(self, _fields, _query):
        return {"log": self.log, "broken": self.broken}

    def get_secrets(self, _fields, _query):
        """All tokens, codes and keys so far, which nobody else may show."""
        keys = [self.oauth.account["private_key"]]
        secrets = [client.get("secret") for client in self.oauth.clients.values()]
        return [*self.oauth.tokens, *self.oauth.refreshes, *self.oauth.codes, *self.oauth.hubspot,
                *keys, *[secret for secret in secrets if secret]]

    def delete_log(self, _fields, _query):
        self.log.clear()
        return {}

    def post_clock(self, fields, _query):
        self.ahead += fields["advance"]
        return {"now": self.now()}

    def post_token(self, fields, _query):
        return self.oauth.control_token(fields)

    def post_browser(self, fields, _query):
        self.oauth.browser = fields
        return {}

    def post_seed(self, fields, _query):
        for name, seed in fields.items():
            self.services[name].add(seed)
        return {}

    def judge_token(self, user):
        return self.oauth.issue(user, KNOWN, 3600, judge=True)
