"""Google Calendar. Its part of a seed, each field of which may be left out:

    zones      {"ann@example.com": "Europe/Berlin"}: of the people's own calendars; default UTC
    calendars  {id: {"summary", "timeZone", "access": {user: "owner" | "writer" | "reader" |
               "freeBusyReader"}}}: shared ones
    events     [event with "calendar": id or address; the organizer is the owner of it]
    hidden     [address]: people whose busy times nobody sees
    page       the most events of a page, less than the request asks for

A person's own calendar has their address as its id. An event exists once, in the organizer's
calendar; guests see it in theirs.
"""

import copy
import datetime
import hashlib
import json
import re
from zoneinfo import ZoneInfo

from dateutil.rrule import rruleset, rrulestr
from service import Refused

UTC = datetime.timezone.utc
ID = re.compile(r"[a-v0-9]{5,1024}")
# No list of instances is longer.
INSTANCES = 10_000
WRITERS = ("owner", "writer")
SEEN = (*WRITERS, "reader")


def instant(point, zone):
    """Start or end of an event as a time in UTC; whole days begin at midnight in the zone."""
    if "dateTime" in point:
        time = datetime.datetime.fromisoformat(point["dateTime"].replace("Z", "+00:00"))
        if time.tzinfo is None:
            time = time.replace(tzinfo=ZoneInfo(point.get("timeZone") or zone))
        return time.astimezone(UTC)
    day = datetime.datetime.fromisoformat(point["date"])
    return day.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def shown(point, zone):
    """A point with its time as the clocks of a zone show it."""
    if "dateTime" not in point:
        return dict(point)
    time = instant(point, zone).astimezone(ZoneInfo(zone))
    return {**point, "dateTime": time.isoformat()}


def moved(point, start):
    """A point of the same kind at another local time, naive, of its zone."""
    if "date" in point:
        return {"date": start.date().isoformat()}
    zone = point["timeZone"]
    # A time that the clocks skip counts from before the change.
    time = start.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone))
    return {"dateTime": time.isoformat(), "timeZone": zone}


def local(point):
    """The local time of a point, naive."""
    if "date" in point:
        return datetime.datetime.fromisoformat(point["date"])
    return instant(point, "UTC").astimezone(ZoneInfo(point["timeZone"])).replace(tzinfo=None)


def merge(old, new):
    """A patch: null removes, objects merge, arrays replace."""
    merged = dict(old)
    for name, value in new.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = merge(merged[name], value)
        else:
            merged[name] = value
    return merged


class Calendar:
    def __init__(self, world):
        self.world = world
        self.calendars, self.hidden, self.page = {}, set(), 2500
        for user in world.users:
            self.calendars[user] = {"summary": user, "timeZone": "UTC", "access": {user: "owner"}}
        self.events = {}          # (calendar, id): event
        self.add(world.seed["calendar"])

    def add(self, seed):
        for user, zone in seed.get("zones", {}).items():
            self.calendars[user]["timeZone"] = zone
        self.calendars.update(copy.deepcopy(seed.get("calendars", {})))
        self.hidden.update(seed.get("hidden", []))
        self.page = seed.get("page", self.page)
        for event in seed.get("events", []):
            event = dict(event)
            calendar = event.pop("calendar")
            self.store(calendar, self.fresh(calendar, calendar, event))

    # Calendars

    def calendar(self, call, roles=SEEN):
        id_ = call.params["calendarId"]
        id_ = call.user if id_ == "primary" else id_
        calendar = self.calendars.get(id_)
        role = calendar and calendar["access"].get(call.user)
        if role is None:
            raise Refused(404, "notFound", "Not Found")
        if role not in roles:
            raise Refused(403, "requiredAccessLevel",
                          "You need to have writer access to this calendar.")
        return id_, calendar

    def calendarList_list(self, call):
        items = [{"kind": "calendar#calendarListEntry", "etag": '"1"', "id": id_,
                  "summary": one["summary"], "timeZone": one["timeZone"],
                  "accessRole": one["access"][call.user],
                  **({"primary": True} if id_ == call.user else {})}
                 for id_, one in self.calendars.items() if call.user in one["access"]]
        return {"kind": "calendar#calendarList", "etag": '"1"',
                "items": items[:call.params.get("maxResults", 100)]}

    # Events

    def fresh(self, calendar, user, body):
        self.check(body)
        self.extras(body)
        event = copy.deepcopy(body)
        zone = self.calendars[calendar]["timeZone"]
        event.setdefault("id", hashlib.md5(self.world.new_id("e").encode()).hexdigest())
        for end in ("start", "end"):
            if "dateTime" in event[end]:
                event[end].setdefault("timeZone", zone)
        event.update({"kind": "calendar#event", "status": event.get("status", "confirmed"),
                      "htmlLink": f"https://www.google.com/calendar/event?eid={event['id']}",
                      "created": "2026-01-01T00:00:00.000Z", "eventType": "default",
                      "iCalUID": f"{event['id']}@google.com", "sequence": 0,
                      "creator": {"email": user}})
        event.setdefault("reminders", {"useDefault": True})
        event.setdefault("organizer", {"email": calendar})
        self.guests(event)
        return event

    @staticmethod
    def guests(event):
        for guest in event.get("attendees", []):
            if "@" not in guest.get("email", ""):
                raise Refused(400, "invalid", "Invalid attendee email.")
            guest.setdefault("responseStatus", "needsAction")

    @staticmethod
    def extras(body):
        """Reminders and attachments."""
        reminders = body.get("reminders", {"useDefault": True})
        overrides = reminders.get("overrides", [])
        if reminders.get("useDefault") and overrides:
            raise Refused(400, "cannotUseDefaultRemindersAndSpecifyOverride",
                          "Cannot specify both default reminders and overrides at the same time.")
        if len(overrides) > 5 or any(not 0 <= one["minutes"] <= 40320 for one in overrides):
            raise Refused(400, "invalid", "Invalid reminders.")
        if len(body.get("attachments", [])) > 25:
            raise Refused(400, "invalid", "Too many attachments.")

    @staticmethod
    def answered(event, body, calendar):
        """The guests after a guest's own answer, which names no others."""
        if {one["email"].lower() for one in body["attendees"]} != {calendar.lower()}:
            raise Refused(403, "forbiddenForNonOrganizer", "Only the own response can be changed.")
        own = body["attendees"][0]
        return [{**guest, **own} if guest["email"].lower() == calendar.lower() else guest
                for guest in event.get("attendees", [])]

    @staticmethod
    def check(body):
        if "start" not in body or "end" not in body:
            raise Refused(400, "required", "Missing end time.")
        kinds = [{"date", "dateTime"} & set(body[end]) for end in ("start", "end")]
        if kinds[0] != kinds[1] or len(kinds[0]) != 1:
            raise Refused(400, "invalid", "Invalid start time.")
        try:
            start, end = instant(body["start"], "UTC"), instant(body["end"], "UTC")
        except (ValueError, KeyError):
            raise Refused(400, "invalid", "Invalid start time.") from None
        if end <= start and body["start"] != body["end"] or end < start:
            raise Refused(400, "timeRangeEmpty", "The specified time range is empty.")
        if body.get("recurrence"):
            if "dateTime" in body["start"] and not body["start"].get("timeZone"):
                raise Refused(400, "required", "Missing time zone definition for start time.")
            for line in body["recurrence"]:
                if not re.match(r"(RRULE|EXRULE|RDATE|EXDATE)[:;]", line):
                    raise Refused(400, "invalid", "Invalid recurrence rule.")
            until = re.search(r"UNTIL=(\w+)", "\n".join(body["recurrence"]))
            if until and ("T" in until[1]) != ("dateTime" in body["start"]):
                raise Refused(400, "invalid", "Invalid recurrence rule.")
            try:
                Calendar.rule(body)
            except (ValueError, KeyError, TypeError):
                raise Refused(400, "invalid", "Invalid recurrence rule.") from None

    @staticmethod
    def rule(event):
        """The local starts of a series, naive."""
        start, days = local(event["start"]), "date" in event["start"]
        zone = None if days else ZoneInfo(event["start"]["timeZone"])

        def naive(match):
            if days or len(match[2]) == 8:
                return match[1] + match[2]
            time = datetime.datetime.strptime(match[2], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            if time.year == 9999:
                return match[1] + "99991231T235959"
            return match[1] + time.astimezone(zone).strftime("%Y%m%dT%H%M%S")

        rules = rruleset()
        for line in event["recurrence"]:
            line = re.sub(r"(UNTIL=)(\w+)", naive, line)
            if line.startswith("RRULE:"):
                rules.rrule(rrulestr(line, dtstart=start))
            elif line.startswith(("EXDATE", "RDATE")):
                named, values = line.split(":", 1)
                own = re.search(r"TZID=([^;]+)", named)
                for value in values.split(","):
                    date = datetime.datetime.fromisoformat(value.rstrip("Z"))
                    written = UTC if value.endswith("Z") else ZoneInfo(own[1]) if own else None
                    if written and zone:
                        date = date.replace(tzinfo=written).astimezone(zone).replace(tzinfo=None)
                    (rules.exdate if line.startswith("EX") else rules.rdate)(date)
        if not any(line.startswith("RRULE") for line in event["recurrence"]):
            rules.rdate(start)
        return rules

    def store(self, calendar, event):
        for field in ("etag", "updated"):
            event.pop(field, None)
        text = json.dumps(event, sort_keys=True) + str(self.world.count("version"))
        event["etag"] = f'"{int(hashlib.md5(text.encode()).hexdigest()[:12], 16)}"'
        event["updated"] = "2026-01-01T00:00:00.000Z"
        self.events[calendar, event["id"]] = event
        return event

    def visible(self, calendar):
        """The events of a calendar, and those that its owner is invited to, with their places."""
        for (place, id_), event in list(self.events.items()):
            invited = any(guest["email"].lower() == calendar.lower()
                          for guest in event.get("attendees", []))
            if place == calendar or calendar in self.world.users and invited:
                yield place, id_, event

    def instance(self, place, master, start):
        """One event of a series, by its local start."""
        length = instant(master["end"], "UTC") - instant(master["start"], "UTC")
        point = moved(master["start"], start)
        id_ = f"{master['id']}_" + (start.strftime("%Y%m%d") if "date" in point else
                                    instant(point, "UTC").strftime("%Y%m%dT%H%M%SZ"))
        if (place, id_) in self.events:
            return self.events[place, id_]
        if "date" in point:
            end = {"date": (start + length).date().isoformat()}
        else:
            zone = ZoneInfo(master["end"]["timeZone"])
            time = (instant(point, "UTC") + length).astimezone(zone)
            end = {"dateTime": time.isoformat(), "timeZone": master["end"]["timeZone"]}
        return {**{k: v for k, v in master.items() if k != "recurrence"}, "id": id_, "start": point,
                "end": end, "recurringEventId": master["id"], "originalStartTime": point}

    def instances(self, place, master, before=None):
        if master["status"] == "cancelled":
            return
        for count, start in enumerate(self.rule(master)):
            point = moved(master["start"], start)
            late = before is not None and instant(point, "UTC") >= before + datetime.timedelta(90)
            if count >= INSTANCES or late:
                return
            yield self.instance(place, master, start)

    def find(self, calendar, id_):
        """The place and the event of an id, also of one event of a series."""
        for place, known, event in self.visible(calendar):
            if known == id_:
                return place, event
            if id_.startswith(known + "_") and event.get("recurrence"):
                for one in self.instances(place, event):
                    if one["id"] == id_:
                        return place, one
        raise Refused(404, "notFound", "Not Found")

    def answer(self, event, call, calendar, zone=None):
        event = copy.deepcopy(event)
        zone = call.params.get("timeZone") or zone or self.calendars[calendar]["timeZone"]
        for field in ("start", "end", "originalStartTime"):
            if field in event:
                event[field] = shown(event[field], zone)
        for person in (event["organizer"], event["creator"], *event.get("attendees", [])):
            if person["email"].lower() == calendar.lower():
                person["self"] = True
        most, guests = call.params.get("maxAttendees"), event.get("attendees", [])
        if most is not None and len(guests) > most:
            event["attendees"] = [guest for guest in guests if guest.get("self")]
            event["attendeesOmitted"] = True
        return event

    # Methods

    def events_list(self, call):
        calendar, settings = self.calendar(call, (*SEEN, "freeBusyReader"))
        params, zone = call.params, settings["timeZone"]
        single = params.get("singleEvents", False)
        if "syncToken" in params:
            # Tokens of this server have always expired.
            raise Refused(410, "fullSyncRequired", "Sync token is no longer valid.")
        if params.get("orderBy") == "startTime" and not single:
            raise Refused(400, "badRequest", "The requested ordering is not available.")
        first, last = (params.get(name) and instant({"dateTime": params[name]}, "UTC")
                       for name in ("timeMin", "timeMax"))
        if first and last and last <= first:
            raise Refused(400, "timeRangeEmpty", "The specified time range is empty.")

        found = []
        for place, _, event in self.visible(calendar):
            if single and event.get("recurrence"):
                found += self.instances(place, event, last)
            elif not (single and "recurringEventId" in event):
                found.append(event)
        items = [event for event in found
                 if (event["status"] != "cancelled" or params.get("showDeleted"))
                 and (not first or instant(event["end"], zone) > first)
                 and (not last or instant(event["start"], zone) < last)
                 and self.matches(event, params.get("q"))]
        if params.get("orderBy") == "startTime":
            items.sort(key=lambda event: (instant(event["start"], zone), event["id"]))
        answer = {"kind": "calendar#events", "etag": '"1"', "summary": settings["summary"],
                  "timeZone": params.get("timeZone") or zone, "defaultReminders": [],
                  "accessRole": settings["access"][call.user],
                  "updated": "2026-01-01T00:00:00.000Z"}
        return {**answer, **self.paged(items, call, calendar)}

    def paged(self, items, call, calendar):
        start = int(call.params.get("pageToken", "0"))
        size = min(call.params.get("maxResults", 250), 2500, self.page)
        page = {"items": [self.answer(one, call, calendar) for one in items[start:start + size]]}
        if len(items) > start + size:
            page["nextPageToken"] = str(start + size)
        return page

    @staticmethod
    def matches(event, words):
        text = json.dumps([event.get("summary"), event.get("description"), event.get("location"),
                           event.get("attendees")], ensure_ascii=False).lower()
        return all(word in text for word in (words or "").lower().split())

    def events_instances(self, call):
        calendar, _ = self.calendar(call)
        place, master = self.find(calendar, call.params["eventId"])
        first, last = (call.params.get(name) and instant({"dateTime": call.params[name]}, "UTC")
                       for name in ("timeMin", "timeMax"))
        items = [one for one in self.instances(place, master, last)
                 if (one["status"] != "cancelled" or call.params.get("showDeleted"))
                 and (not first or instant(one["end"], "UTC") > first)
                 and (not last or instant(one["start"], "UTC") < last)]
        zone = self.calendars[calendar]["timeZone"]
        return {"kind": "calendar#events", "etag": '"1"', "timeZone": zone, "defaultReminders": [],
                **self.paged(items, call, calendar)}

    def events_get(self, call):
        calendar, _ = self.calendar(call)
        return self.answer(self.find(calendar, call.params["eventId"])[1], call, calendar)

    def events_insert(self, call):
        calendar, _ = self.calendar(call, WRITERS)
        body = dict(call.body)
        if "id" in body and not ID.fullmatch(body["id"]):
            raise Refused(400, "invalid", "Invalid resource id value.")
        if (calendar, body.get("id")) in self.events:
            raise Refused(409, "duplicate", "The requested identifier already exists.")
        if not call.params.get("supportsAttachments"):
            body.pop("attachments", None)
        event = self.fresh(calendar, call.user, body)
        self.conference(event, call)
        return self.answer(self.store(calendar, event), call, calendar)

    @staticmethod
    def conference(event, call):
        request = event.get("conferenceData", {}).get("createRequest")
        if call.params.get("conferenceDataVersion", 0) == 0:
            event.pop("conferenceData", None)
        elif request:
            if not request.get("requestId"):
                raise Refused(400, "invalid", "Invalid conference data.")
            uri = "https://meet.google.com/" + hashlib.md5(
                request["requestId"].encode()).hexdigest()[:10]
            event["hangoutLink"] = uri
            event["conferenceData"] = {
                "createRequest": {**request, "status": {"statusCode": "success"}},
                "conferenceId": uri.rsplit("/", 1)[1],
                "entryPoints": [{"entryPointType": "video", "uri": uri}]}

    def own(self, call, event):
        version = call.headers.get("if-match")
        if version not in (None, "*", event["etag"]):
            raise Refused(412, "conditionNotMet", "Precondition Failed")

    def events_patch(self, call):
        calendar, _ = self.calendar(call, WRITERS)
        place, event = self.find(calendar, call.params["eventId"])
        self.own(call, event)
        body = dict(call.body)
        if body.pop("attendeesOmitted", False):
            body["attendees"] = self.answered(event, body, calendar)
        if not call.params.get("supportsAttachments"):
            body.pop("attachments", None)
        changed = merge(event, body)
        if place != calendar and set(body) - {"attendees", "reminders", "colorId"}:
            raise Refused(403, "forbiddenForNonOrganizer",
                          "Shared properties can only be changed by the organizer of the event.")
        self.check(changed)
        self.extras(changed)
        self.guests(changed)
        self.conference(changed, call)
        changed["sequence"] = event["sequence"] + 1
        stored = self.store(place, changed)
        if stored.get("recurrence"):
            # Exceptions of starts that the series no longer has are lost.
            starts = {one["id"] for one in self.instances(place, stored)}
            for known, id_ in list(self.events):
                own = self.events[known, id_].get("recurringEventId") == stored["id"]
                if own and id_ not in starts:
                    del self.events[known, id_]
        return self.answer(stored, call, calendar)

    def events_delete(self, call):
        calendar, _ = self.calendar(call, WRITERS)
        place, event = self.find(calendar, call.params["eventId"])
        if event["status"] == "cancelled":
            raise Refused(410, "deleted", "Resource has been deleted")
        self.own(call, event)
        if place == calendar:
            self.store(place, {**event, "status": "cancelled"})
        else:
            # A guest's copy goes away, and the organizer sees that they do not come.
            guests = [guest for guest in event["attendees"]
                      if guest["email"].lower() != calendar.lower()]
            self.store(place, {**event, "attendees": guests})

    def freebusy_query(self, call):
        first, last = (instant({"dateTime": call.body[name]}, "UTC")
                       for name in ("timeMin", "timeMax"))
        if last <= first:
            raise Refused(400, "timeRangeEmpty", "The specified time range is empty.")
        if last - first > datetime.timedelta(days=93):
            raise Refused(400, "timeRangeTooLong", "The requested time range is too long.")
        calendars = {}
        for item in call.body.get("items", []):
            id_ = call.user if item["id"] == "primary" else item["id"]
            if len(calendars) >= 50:
                calendars[item["id"]] = self.error("tooManyCalendarsRequested")
            elif id_ not in self.calendars or id_ in self.hidden:
                calendars[item["id"]] = self.error("notFound")
            else:
                calendars[item["id"]] = {"busy": self.busy(id_, first, last)}
        return {"kind": "calendar#freeBusy", "timeMin": call.body["timeMin"],
                "timeMax": call.body["timeMax"], "calendars": calendars}

    @staticmethod
    def error(reason):
        return {"busy": [], "errors": [{"domain": "global", "reason": reason}]}

    def busy(self, calendar, first, last):
        """Merged and cut to the range, as Google gives them."""
        zone, spans = self.calendars[calendar]["timeZone"], []
        for place, _, event in self.visible(calendar):
            if "recurringEventId" in event:
                continue
            for one in self.instances(place, event, last) if event.get("recurrence") else [event]:
                answer = next((guest["responseStatus"] for guest in one.get("attendees", [])
                               if guest["email"].lower() == calendar.lower()), "accepted")
                start, end = (instant(one[name], zone) for name in ("start", "end"))
                free = one.get("transparency") == "transparent" or answer == "declined"
                if one["status"] != "cancelled" and not free and start < last and end > first:
                    spans.append((max(start, first), min(end, last)))
        merged = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return [{"start": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
                 "end": end.strftime("%Y-%m-%dT%H:%M:%SZ")} for start, end in merged]
