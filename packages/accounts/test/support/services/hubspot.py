"""HubSpot, in memory: contacts, companies, deals, tickets, notes, tasks, calls and meetings, with
their properties, associations, pipelines and owners.

A seed has, each of which may be left out:

    contacts, companies, deals, tickets, notes, tasks, calls, meetings
                  [{"id", "properties"}]; ids default to 1, 2, ...
    associations  [["contacts", "1", "companies", "2"]]
    properties    {"contacts": [definition]}: properties of this account
    pipelines     [{"id", "label", "stages": [{"id", "label"}]}] of deals; default: "Sales
                  Pipeline". Tickets have the "Support Pipeline".
    owners        [{"id", "email"}]; default: 7, bob@example.com
    labels        [{"from", "to", "id", "label"}]: the labels that this account gave
"""

import datetime
import re

import hubspot_routes as routes
from hubspot.crm.association_type import AssociationType
from service import Broken, Refused, need

KINDS = {"contacts": "contact", "companies": "company", "deals": "deal", "tickets": "ticket",
         "notes": "note", "tasks": "task", "calls": "call", "meetings": "meeting"}

# These have the scopes of contacts.
SCOPES = {kind: "contacts" for kind in ("notes", "tasks", "calls", "meetings")}

# The ids of associations without a label: those that the package names, and of a kind with itself
# as HubSpot documents them.
TYPES = {("contacts", "contacts"): 449, ("companies", "companies"): 450, ("deals", "deals"): 451}
for one, one_name in KINDS.items():
    for other, other_name in KINDS.items():
        number = getattr(AssociationType, f"{one_name}_to_{other_name}".upper(), None)
        if number is not None:
            TYPES[one, other] = number

# The properties with the ids of a record's pipeline and stage.
PIPELINES = {"deals": ("pipeline", "dealstage"), "tickets": ("hs_pipeline", "hs_pipeline_stage")}


def definition(name, type_="string", field="text", label=None, options=(), read_only=False):
    return {"name": name, "label": label or name, "type": type_, "fieldType": field,
            "groupName": "information", "description": "", "hidden": False,
            "options": [{"value": value, "label": text, "hidden": False, "displayOrder": n}
                        for n, (value, text) in enumerate(options)],
            "modificationMetadata": {"archivable": False, "readOnlyDefinition": True,
                                     "readOnlyValue": read_only}}


def texts(*names):
    return [definition(name) for name in names]


def times(*names):
    return [definition(name, "datetime", "date", read_only=True) for name in names]


STAGES = [("subscriber", "Subscriber"), ("lead", "Lead"), ("customer", "Customer")]
OWNER = definition("hubspot_owner_id", "enumeration", "select", "Contact owner")
LIFE = definition("lifecyclestage", "enumeration", "radio", "Lifecycle Stage", STAGES)

PROPERTIES = {
    "contacts": texts("email", "lastname", "phone", "mobilephone", "company", "jobtitle",
                      "address", "city", "zip", "country", "website")
    + [definition("firstname", label="First Name"), LIFE, OWNER,
       definition("hs_lead_status", "enumeration", "radio", "Lead Status",
                  [("NEW", "New"), ("OPEN", "Open")]),
       definition("hs_buying_role", "enumeration", "checkbox", "Buying Role",
                  [("BUDGET_HOLDER", "Budget Holder"), ("CHAMPION", "Champion")])]
    + times("createdate", "lastmodifieddate"),
    "companies": texts("name", "domain", "phone", "city", "country", "address", "zip", "website",
                       "description", "industry")
    + [LIFE, OWNER, definition("numberofemployees", "number", "number"),
       definition("annualrevenue", "number", "number")]
    + times("createdate", "hs_lastmodifieddate"),
    "deals": texts("dealname", "description", "dealtype", "pipeline", "dealstage")
    + [OWNER, definition("amount", "number", "number"),
       definition("closedate", "datetime", "date", "Close Date")]
    + times("createdate", "hs_lastmodifieddate"),
    "notes": [definition("hs_note_body", field="html"), OWNER,
              definition("hs_timestamp", "datetime", "date")]
    + times("hs_createdate", "hs_lastmodifieddate"),
    "tasks": [definition("hs_task_subject"), definition("hs_task_body", field="html"), OWNER,
              definition("hs_timestamp", "datetime", "date"),
              definition("hs_task_status", "enumeration", "select", "Task Status",
                         [(name, name.title()) for name in
                          ("NOT_STARTED", "IN_PROGRESS", "WAITING", "COMPLETED", "DEFERRED")]),
              definition("hs_task_priority", "enumeration", "select", "Priority",
                         [(name, name.title()) for name in ("LOW", "MEDIUM", "HIGH")]),
              definition("hs_task_type", "enumeration", "select", "Task Type",
                         [(name, name.title()) for name in ("TODO", "CALL", "EMAIL")])]
    + times("hs_createdate", "hs_lastmodifieddate"),
    "tickets": texts("subject", "content", "hs_pipeline", "hs_pipeline_stage", "source_type")
    + [OWNER, definition("hs_ticket_priority", "enumeration", "select", "Priority",
                         [(name, name.title()) for name in ("LOW", "MEDIUM", "HIGH", "URGENT")]),
       definition("hs_ticket_category", "enumeration", "checkbox", "Category",
                  [("BILLING_ISSUE", "Billing issue"), ("PRODUCT_ISSUE", "Product Issue")])]
    + times("createdate", "hs_lastmodifieddate"),
    "calls": texts("hs_call_title", "hs_call_from_number", "hs_call_to_number",
                   "hs_call_disposition")
    + [definition("hs_call_body", field="html"), OWNER,
       definition("hs_timestamp", "datetime", "date"),
       definition("hs_call_duration", "number", "number"),
       definition("hs_call_direction", "enumeration", "select", "Direction",
                  [(name, name.title()) for name in ("INBOUND", "OUTBOUND")]),
       definition("hs_call_status", "enumeration", "select", "Status",
                  [(name, name.title()) for name in
                   ("BUSY", "CALLING_CRM_USER", "CANCELED", "COMPLETED", "CONNECTING", "FAILED",
                    "IN_PROGRESS", "NO_ANSWER", "QUEUED", "RINGING")])]
    + times("hs_createdate", "hs_lastmodifieddate"),
    "meetings": texts("hs_meeting_title", "hs_meeting_location", "hs_internal_meeting_notes",
                      "hs_meeting_external_url")
    + [definition("hs_meeting_body", field="html"), OWNER,
       definition("hs_timestamp", "datetime", "date"),
       definition("hs_meeting_start_time", "datetime", "date"),
       definition("hs_meeting_end_time", "datetime", "date"),
       definition("hs_meeting_outcome", "enumeration", "select", "Outcome",
                  [(name, name.title()) for name in
                   ("SCHEDULED", "COMPLETED", "RESCHEDULED", "NO_SHOW", "CANCELED")])]
    + times("hs_createdate", "hs_lastmodifieddate"),
}

# Those that every account must have before a record can be created.
REQUIRED = {"deals": ["dealname"], "tickets": ["subject", "hs_pipeline_stage"],
            **{kind: ["hs_timestamp"] for kind in ("notes", "tasks", "calls", "meetings")}}
SEARCHED = {"contacts": ["firstname", "lastname", "email", "phone", "company"],
            "companies": ["name", "domain", "phone"], "deals": ["dealname"],
            "tickets": ["subject", "content"], "notes": ["hs_note_body"],
            "tasks": ["hs_task_subject", "hs_task_body"],
            "calls": ["hs_call_title", "hs_call_body"],
            "meetings": ["hs_meeting_title", "hs_meeting_body"]}
DEFAULT = {"contacts": ["firstname", "lastname", "email"], "companies": ["name", "domain"],
           "deals": ["dealname", "amount", "closedate", "pipeline", "dealstage"],
           "tickets": ["subject", "content", "hs_pipeline", "hs_pipeline_stage",
                       "hs_ticket_priority", "hs_ticket_category"],
           "notes": [], "tasks": [], "calls": [], "meetings": []}
CHANGED = {"contacts": ("createdate", "lastmodifieddate"),
           **{kind: ("createdate", "hs_lastmodifieddate")
              for kind in ("companies", "deals", "tickets")},
           **{kind: ("hs_createdate", "hs_lastmodifieddate")
              for kind in ("notes", "tasks", "calls", "meetings")}}


def iso(seconds):
    time = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text):
    """A time in milliseconds, from milliseconds or ISO 8601; None if it is neither."""
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return int(time.timestamp() * 1000)


def words(text):
    return re.findall(r"\w+", text.lower())


def invalid(message):
    return Refused(400, "VALIDATION_ERROR", message)


class HubSpot:
    def __init__(self, world):
        self.world = world
        seed = world.seed["hubspot"]
        self.records = {kind: {} for kind in KINDS}
        self.links = {}
        self.properties = {kind: {one["name"]: one for one in list_}
                           for kind, list_ in PROPERTIES.items()}
        self.owners = seed.get("owners", [{"id": "7", "email": "bob@example.com"}])
        self.labels = seed.get("labels", [])
        deals = [{"id": "default", "label": "Sales Pipeline",
                  "stages": [{"id": "appointmentscheduled", "label": "Appointment Scheduled"},
                             {"id": "contractsent", "label": "Contract Sent"},
                             {"id": "closedwon", "label": "Closed Won"}]}]
        tickets = [{"id": "0", "label": "Support Pipeline",
                    "stages": [{"id": "1", "label": "New"}, {"id": "2", "label": "Waiting on us"},
                               {"id": "4", "label": "Closed"}]}]
        self.pipelines = {"deals": seed.get("pipelines") or deals, "tickets": tickets}
        for kind, list_ in seed.get("properties", {}).items():
            for fields in list_:
                self.properties[kind][fields["name"]] = {**definition(fields["name"]), **fields}
        self.add(seed)

    def add(self, seed):
        for kind in KINDS:
            for one in seed.get(kind, []):
                id_ = one.get("id") or self.new_id()
                self.store(kind, id_, one.get("properties", {}))
        for one, id_, other, other_id in seed.get("associations", []):
            self.link(one, id_, other, other_id, "HUBSPOT_DEFINED", TYPES[one, other])

    def new_id(self):
        while True:
            id_ = str(self.world.count("hubspot"))
            if all(id_ not in records for records in self.records.values()):
                return id_

    # Requests

    def handle(self, request):
        route, path = routes.find(request.method, request.path)
        # The parts of a path are never encoded here, but addresses of contacts.
        path = {name: value.replace("%40", "@") for name, value in path.items()}
        request.id = request.entry["method"] = route.name
        scopes = request.hubspot_scopes()
        if not request.entry.get("judge"):
            request.fault()
        request.entry["scopes"] = sorted(scopes) if scopes != "all" else "all"
        query = routes.query(route, request.query)
        body = None
        if route.body:
            body = routes.checked(request.json(), route.body, route.models)
        else:
            need(not request.body, f"{route.name} has no body")
        request.entry["params"], request.entry["body"] = {**path, **query}, body
        _, subject, action = route.name.split(".")
        kind = subject if subject in KINDS else path.get("objectType") or path.get(
            "fromObjectType")
        if kind is not None and kind not in KINDS:
            raise invalid(f"Unable to infer object type from: {kind}")
        self.allow(scopes, subject, kind, request.method, action)
        work = getattr(self, f"{subject if subject not in KINDS else 'object'}_{action}", None)
        if work is None:
            raise Broken(f"{route.name} is not played")
        status, value = work(kind, path, query, body)
        return status, routes.answer(route, status, value)

    def allow(self, scopes, subject, kind, http, action):
        if scopes == "all" or "all" in scopes:
            return
        reads = http == "GET" or action in ("search", "batch_read")
        name = SCOPES.get(kind, kind)
        wanted = f"crm.objects.{name}.{'read' if reads else 'write'}"
        wanted = {"owners": "crm.objects.owners.read"}.get(subject, wanted)
        # Tickets have one scope for everything.
        wanted = "tickets" if name == "tickets" else wanted
        # A token that may write may also read the definitions.
        enough = {wanted}
        if subject in ("properties", "pipelines", "labels"):
            enough.add(f"crm.objects.{name}.write")
        if not enough & set(scopes):
            refused = Refused(403, "MISSING_SCOPES", "This app hasn't been granted all required "
                              "scopes to make this call.")
            refused.wanted = wanted
            raise refused

    def error(self, refused):
        value = {"status": "error", "message": refused.message, "category": refused.reason,
                 "correlationId": "00000000-0000-0000-0000-000000000000"}
        if hasattr(refused, "wanted"):
            value["errors"] = [{"message": "One or more of the following scopes are required.",
                                "context": {"requiredGranularScopes": [refused.wanted]}}]
        if refused.status == 429:
            value = {"status": "error", "message": refused.message, "errorType": "RATE_LIMIT",
                     "policyName": refused.reason, "category": "RATE_LIMITS",
                     "correlationId": value["correlationId"]}
        return value

    # State

    def store(self, kind, id_, properties):
        now = self.world.now()
        created, changed = CHANGED[kind]
        record = self.records[kind].setdefault(id_, {"created": now, "properties": {}})
        record["changed"] = now
        record["properties"].update(properties)
        record["properties"].update({"hs_object_id": id_, changed: iso(now)})
        record["properties"].setdefault(created, iso(record["created"]))
        return record

    def link(self, kind, id_, other, other_id, category, type_):
        self.links.setdefault((kind, id_, other, other_id), set()).add((category, type_))
        back = TYPES.get((other, kind))
        if back:
            self.links.setdefault((other, other_id, kind, id_), set()).add(
                ("HUBSPOT_DEFINED", back))

    def fetch(self, kind, id_, property_=None):
        if property_ is not None:
            definition_ = self.properties[kind].get(property_)
            if definition_ is None or property_ != "email":
                raise invalid(f"Property {property_} is not a unique property")
            for found, record in self.records[kind].items():
                if record["properties"].get(property_, "").lower() == id_.lower():
                    return found, record
        elif id_ in self.records[kind]:
            return id_, self.records[kind][id_]
        raise Refused(404, "OBJECT_NOT_FOUND", "resource not found")

    def valid(self, kind, properties, creates):
        for name, value in properties.items():
            known = self.properties[kind].get(name)
            if known is None:
                raise invalid(f'Property values were not valid: Property "{name}" does not exist')
            if known["modificationMetadata"]["readOnlyValue"]:
                raise invalid(f"Property {name} is read only")
            if value == "":
                continue
            if known["options"] and known["type"] == "enumeration":
                parts = value.split(";") if known["fieldType"] == "checkbox" else [value]
                options = [one["value"] for one in known["options"]]
                for part in parts:
                    if part not in options:
                        raise invalid(f"{part} was not one of the allowed options: {options}")
            if known["type"] == "number" and not re.fullmatch(r"-?\d+(\.\d+)?", value):
                raise invalid(f"{value} was not a valid number")
            if known["type"] in ("date", "datetime") and moment(value) is None:
                raise invalid(f"{value} was not a valid long")
            if name == "email" and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value):
                raise invalid(f"Email address {value} is invalid")
            if name == "hubspot_owner_id" and all(one["id"] != value for one in self.owners):
                raise invalid(f"Owner {value} does not exist")
            if len(value) > 65536:
                raise invalid(f"{name} is too long")
        in_pipeline, in_stage = PIPELINES.get(kind, (None, None))
        if in_stage in properties or in_pipeline in properties:
            stages = {stage["id"]: one["id"] for one in self.pipelines[kind]
                      for stage in one["stages"]}
            pipeline = properties.get(in_pipeline, self.pipelines[kind][0]["id"])
            if stages.get(properties.get(in_stage)) != pipeline:
                raise invalid("the stage is not one of the pipeline")
        if creates:
            for name in REQUIRED.get(kind, []):
                if not properties.get(name):
                    raise invalid(f"Some required properties were not set: {name}")

    def unique(self, kind, properties, own=None):
        email = properties.get("email", "").lower()
        if kind != "contacts" or not email:
            return
        for id_, record in self.records[kind].items():
            if id_ != own and record["properties"].get("email", "").lower() == email:
                raise Refused(409, "CONFLICT", f"Contact already exists. Existing ID: {id_}")

    def shown(self, kind, id_, names):
        record = self.records[kind][id_]
        created, changed = CHANGED[kind]
        names = set(names or DEFAULT[kind]) | {"hs_object_id", created, changed}
        # Unknown names are ignored in silence, and properties without a value are null.
        values = {name: record["properties"].get(name) or None for name in sorted(names)
                  if name in self.properties[kind] or name == "hs_object_id"}
        return {"id": id_, "properties": values, "createdAt": iso(record["created"]),
                "updatedAt": iso(record["changed"]), "archived": False}

    # Objects

    def object_get(self, kind, path, query, _body):
        id_, _ = self.fetch(kind, path[f"{KINDS[kind]}Id"], query.get("idProperty"))
        return 200, self.linked(kind, id_, query)

    def object_get_page(self, kind, _path, query, _body):
        limit, start = query.get("limit", 10), int(query.get("after", "0"))
        if not 1 <= limit <= 100:
            raise invalid("limit must be from 1 to 100")
        ids = sorted(self.records[kind], key=int)
        value = {"results": [self.linked(kind, id_, query) for id_ in ids[start:start + limit]]}
        if start + limit < len(ids):
            value["paging"] = {"next": {"after": str(start + limit)}}
        return 200, value

    def linked(self, kind, id_, query):
        value = self.shown(kind, id_, query.get("properties"))
        linked = {}
        for other in query.get("associations", []):
            if other not in KINDS:
                raise invalid(f"Unable to infer object type from: {other}")
            results = []
            for (one, one_id, to, to_id), types in sorted(self.links.items()):
                if (one, one_id, to) == (kind, id_, other):
                    results += [{"id": to_id, "type": f"{KINDS[one]}_to_{KINDS[to]}"}
                                for _ in types]
            if results:
                linked[other] = {"results": results}
        if linked:
            value["associations"] = linked
        return value

    def object_create(self, kind, _path, _query, body):
        self.valid(kind, body["properties"], True)
        self.unique(kind, body["properties"])
        links = []
        for one in body.get("associations", []):
            for type_ in one["types"]:
                other = self.other(kind, type_["associationCategory"], type_["associationTypeId"])
                self.fetch(other, one["to"]["id"])
                links.append((other, one["to"]["id"], type_["associationCategory"],
                              type_["associationTypeId"]))
        id_ = self.new_id()
        self.store(kind, id_, body["properties"])
        for other, other_id, category, type_ in links:
            self.link(kind, id_, other, other_id, category, type_)
        return 201, self.shown(kind, id_, list(self.properties[kind]))

    def other(self, kind, category, id_):
        """The kind at the other end of an association's type."""
        if category == "HUBSPOT_DEFINED":
            for (one, other), type_ in TYPES.items():
                if (one, type_) == (kind, id_):
                    return other
        for label in self.labels:
            if category == "USER_DEFINED" and (label["from"], label["id"]) == (kind, id_):
                return label["to"]
        raise invalid(f"{category} {id_} is not a type of association of {kind}")

    def object_update(self, kind, path, query, body):
        id_, _ = self.fetch(kind, path[f"{KINDS[kind]}Id"], query.get("idProperty"))
        self.valid(kind, body["properties"], False)
        self.unique(kind, body["properties"], id_)
        self.store(kind, id_, body["properties"])
        return 200, self.shown(kind, id_, list(body["properties"]))

    def object_batch_read(self, kind, _path, _query, body):
        if len(body["inputs"]) > 100:
            raise invalid("a batch has at most 100 inputs")
        ids = [one["id"] for one in body["inputs"]]
        found = [id_ for id_ in ids if id_ in self.records[kind]]
        now = iso(self.world.now())
        value = {"status": "COMPLETE", "startedAt": now, "completedAt": now,
                 "results": [self.shown(kind, id_, body["properties"]) for id_ in found]}
        if len(found) == len(ids):
            return 200, value
        gone = [id_ for id_ in ids if id_ not in found]
        error = {"status": "error", "category": "OBJECT_NOT_FOUND", "errors": [], "links": {},
                 "message": "Could not get some objects", "context": {"ids": gone}}
        return 207, {**value, "numErrors": 1, "errors": [error]}

    def object_search(self, kind, _path, _query, body):
        limit = body.get("limit", 10)
        if not 1 <= limit <= 200:
            raise invalid("limit must be from 1 to 200")
        if len(body.get("query", "")) > 3000:
            raise invalid("query is too long")
        groups = body.get("filterGroups", [])
        if len(groups) > 5 or any(len(group["filters"]) > 6 for group in groups):
            raise invalid("too many filters")
        found = [id_ for id_ in self.records[kind]
                 if self.has_words(kind, id_, body.get("query", ""))
                 and (not groups or any(all(self.fits(kind, id_, one) for one in group["filters"])
                                        for group in groups))]
        for sort in reversed(body.get("sorts", [])):
            name = sort.lstrip("-")
            self.property(kind, name)
            found.sort(key=lambda id_: self.key(kind, id_, name), reverse=sort.startswith("-"))
        start = int(body.get("after", "0"))
        page = found[start:start + limit]
        value = {"total": len(found),
                 "results": [self.shown(kind, id_, body.get("properties")) for id_ in page]}
        if start + limit < len(found):
            value["paging"] = {"next": {"after": str(start + limit)}}
        return 200, value

    def property(self, kind, name):
        if name not in self.properties[kind]:
            raise invalid(f"There was a problem with the request: Property {name} does not exist")
        return self.properties[kind][name]

    def key(self, kind, id_, name):
        text = self.records[kind][id_]["properties"].get(name, "")
        type_ = self.properties[kind][name]["type"]
        if text == "":
            return (0, 0, "")
        if type_ == "number":
            return (1, float(text), "")
        if type_ in ("date", "datetime"):
            return (1, moment(text), "")
        return (1, 0, text.lower())

    def has_words(self, kind, id_, text):
        values = self.records[kind][id_]["properties"]
        there = [word for name in SEARCHED[kind] for word in words(values.get(name, ""))]
        return all(any(one.startswith(word) for one in there) for word in words(text))

    def fits(self, kind, id_, filter_):
        name, operator = filter_["propertyName"], filter_["operator"]
        if name.startswith("associations."):
            one = name.split(".", 1)[1]
            other = next((many for many, single in KINDS.items() if single == one), None)
            if other is None or operator not in ("EQ", "IN"):
                raise invalid(f"{name} {operator} is not a filter")
            ids = filter_.get("values") or [filter_["value"]]
            return any((kind, id_, other, other_id) in self.links for other_id in ids)
        known = self.property(kind, name)
        text = self.records[kind][id_]["properties"].get(name, "")
        if operator == "HAS_PROPERTY":
            return text != ""
        if operator == "NOT_HAS_PROPERTY":
            return text == ""
        if operator == "IN":
            return text.lower() in [value.lower() for value in filter_["values"]]
        wanted = filter_["value"]
        if operator == "CONTAINS_TOKEN":
            return all(word in words(text) for word in words(wanted))
        if known["type"] in ("date", "datetime"):
            if not re.fullmatch(r"-?\d+", wanted):
                raise invalid(f"{wanted} was not a valid long")
            left, right = moment(text) if text else None, int(wanted)
        elif known["type"] == "number":
            if not re.fullmatch(r"-?\d+(\.\d+)?", wanted):
                raise invalid(f"{wanted} was not a valid number")
            left, right = float(text) if text else None, float(wanted)
        else:
            left, right = text.lower() or None, wanted.lower()
        if operator == "NEQ":
            return left is not None and left != right
        compare = {"EQ": lambda: left == right, "GT": lambda: left > right,
                   "GTE": lambda: left >= right, "LT": lambda: left < right,
                   "LTE": lambda: left <= right}
        if operator not in compare:
            raise invalid(f"{operator} is not an operator")
        return left is not None and compare[operator]()

    # The rest

    def properties_get_all(self, kind, _path, _query, _body):
        return 200, {"results": list(self.properties[kind].values())}

    def pipelines_get_all(self, kind, _path, _query, _body):
        now = iso(self.world.now())
        dates = {"createdAt": now, "updatedAt": now, "archived": False}
        return 200, {"results": [
            {**dates, "id": one["id"], "label": one["label"], "displayOrder": n,
             "stages": [{**dates, "displayOrder": m, "metadata": {}, **stage}
                        for m, stage in enumerate(one["stages"])]}
            for n, one in enumerate(self.pipelines[kind])]}

    def owners_get_page(self, _kind, _path, query, _body):
        now = iso(self.world.now())
        wanted = query.get("email")
        return 200, {"results": [
            {"id": one["id"], "email": one["email"], "type": "PERSON", "archived": False,
             "createdAt": now, "updatedAt": now}
            for one in self.owners if wanted is None or wanted.lower() == one["email"].lower()]}

    def labels_get_all(self, kind, path, _query, _body):
        other = path["toObjectType"]
        results = [{"category": "HUBSPOT_DEFINED", "typeId": TYPES[kind, other], "label": None}]
        results += [{"category": "USER_DEFINED", "typeId": one["id"], "label": one["label"]}
                    for one in self.labels if (one["from"], one["to"]) == (kind, other)]
        return 200, {"results": results}

    def associations_create_default(self, kind, path, _query, _body):
        other = path["toObjectType"]
        id_, _ = self.fetch(kind, path["fromObjectId"])
        other_id, _ = self.fetch(other, path["toObjectId"])
        if (kind, other) not in TYPES:
            raise invalid(f"{kind} and {other} cannot be associated")
        self.link(kind, id_, other, other_id, "HUBSPOT_DEFINED", TYPES[kind, other])
        now = iso(self.world.now())
        one = {"from": {"id": id_}, "to": {"id": other_id},
               "associationSpec": {"associationCategory": "HUBSPOT_DEFINED",
                                   "associationTypeId": TYPES[kind, other]}}
        return 200, {"status": "COMPLETE", "startedAt": now, "completedAt": now, "results": [one]}

    def associations_get_page(self, kind, path, _query, _body):
        other = path["toObjectType"]
        results = []
        for (one, id_, to, to_id), types in sorted(self.links.items()):
            if (one, id_, to) == (kind, path["objectId"], other):
                results.append({"toObjectId": to_id, "associationTypes": [
                    {"category": category, "typeId": type_, "label": next(
                        (label["label"] for label in self.labels if label["id"] == type_), None)}
                    for category, type_ in sorted(types)]})
        return 200, {"results": results}

    def associations_create(self, kind, path, _query, body):
        other = path["toObjectType"]
        id_, _ = self.fetch(kind, path["objectId"])
        other_id, _ = self.fetch(other, path["toObjectId"])
        labels = []
        for type_ in body:
            category, number = type_["associationCategory"], type_["associationTypeId"]
            if self.other(kind, category, number) != other:
                raise invalid(f"{number} is not a type of association with {other}")
            self.link(kind, id_, other, other_id, category, number)
            labels += [one["label"] for one in self.labels if one["id"] == number]
        return 201, {"fromObjectTypeId": kind, "fromObjectId": id_, "toObjectTypeId": other,
                     "toObjectId": other_id, "labels": labels}
