"""Outlook's calendars, in memory. Its part of a seed, each field of which may be left out:

    zones      {"ann@example.com": "Europe/Berlin"}: of the people's mailboxes; default UTC
    calendars  {user: {id: {"name", "canEdit"}}}: more calendars
    events     {user: [event, as it is posted, and "id"]}; its "attachments" are
               [{"name", "type", "text"}], a link if without a text, and "from" is the
               organizer if another person is
    hidden     [address]: people whose busy times nobody sees
    personal   [address]: people with a personal account, which has no schedules
    page       the most events of a page

As Exchange does, each person has a copy of an event in the own calendar, and the organizer's changes
reach those of the guests.
"""

import copy
import datetime
import re
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule
from graph import Filter, page
from service import Broken, Media, Refused
from tzlocal.windows_tz import win_tz

UTC = datetime.timezone.utc
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
INDEX = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}
FREQUENCY = {"daily": 3, "weekly": 2, "absoluteMonthly": 1, "relativeMonthly": 1,
             "absoluteYearly": 0, "relativeYearly": 0}
NAMES = {zone: name for name, zone in reversed(win_tz.items())}
INSTANCES = 5_000


def zone(name):
    try:
        return ZoneInfo(win_tz.get(name, name))
    except Exception:
        raise Refused(400, "TimeZoneNotSupportedException", f"A valid TimeZone value must be "
                      f"specified. The following TimeZone value is not supported: '{name}'.") \
            from None


def local(point):
    return datetime.datetime.fromisoformat(point["dateTime"][:19])


def instant(point):
    return local(point).replace(tzinfo=zone(point["timeZone"])).astimezone(UTC)


def shown(time):
    return {"dateTime": time.strftime("%Y-%m-%dT%H:%M:%S.0000000"), "timeZone": "UTC"}


def moment(text):
    """A time of a query. Without an offset it is in UTC."""
    try:
        time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Refused(400, "ErrorInvalidParameter", f"{text!r} is no time.") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def missing():
    return Refused(404, "ErrorItemNotFound", "The specified object was not found in the store.")


def check(body):
    for name in ("start", "end"):
        if name in body:
            local(body[name]), zone(body[name]["timeZone"])
    if body.get("isAllDay") and any(local(body[name]).time() != datetime.time(0)
                                    for name in ("start", "end") if name in body):
        raise Refused(400, "ErrorPropertyValidationFailure", "The Event.Start property for an "
                      "all-day event needs to be set to midnight.")


def check_recurrence(event):
    recurrence = event.get("recurrence")
    if not recurrence:
        return
    pattern, range_ = recurrence["pattern"], recurrence["range"]
    needed = {"weekly": ["daysOfWeek"], "absoluteMonthly": ["dayOfMonth"],
              "relativeMonthly": ["daysOfWeek"], "absoluteYearly": ["dayOfMonth", "month"],
              "relativeYearly": ["daysOfWeek", "month"], "daily": []}[pattern["type"]]
    ends = {"noEnd": [], "numbered": ["numberOfOccurrences"], "endDate": ["endDate"]}
    for name in [*needed, "interval"]:
        if not pattern.get(name):
            raise Refused(400, "ErrorPropertyValidationFailure", f"The pattern has no {name}.")
    for name in ends[range_["type"]]:
        if not range_.get(name):
            raise Refused(400, "ErrorPropertyValidationFailure", f"The range has no {name}.")
    if range_["startDate"] != event["start"]["dateTime"][:10]:
        raise Refused(400, "ErrorOccurrenceTimeSpanTooBig", "The start of the range is not that of "
                      "the event.")


def starts(event):
    """The local starts of a series."""
    pattern, range_ = event["recurrence"]["pattern"], event["recurrence"]["range"]
    options = {"dtstart": local(event["start"]), "interval": pattern["interval"]}
    days = [DAYS.index(day) for day in pattern.get("daysOfWeek", [])]
    kind = pattern["type"]
    if kind == "weekly":
        options.update(byweekday=days, wkst=DAYS.index(pattern.get("firstDayOfWeek", "sunday")))
    elif kind.startswith("relative"):
        options.update(byweekday=days, bysetpos=INDEX[pattern.get("index", "first")])
    elif kind.startswith("absolute"):
        options.update(bymonthday=pattern["dayOfMonth"])
    if kind.endswith("Yearly"):
        options.update(bymonth=pattern["month"])
    if range_["type"] == "numbered":
        options["count"] = range_["numberOfOccurrences"]
    elif range_["type"] == "endDate":
        end = datetime.date.fromisoformat(range_["endDate"])
        options["until"] = datetime.datetime.combine(end, datetime.time(23, 59, 59))
    return rrule(FREQUENCY[kind], **options)


class OutlookCalendar:
    def __init__(self, world):
        self.world, self.events, self.hidden, self.personal, self.page = world, {}, set(), set(), 1000
        self.zones = {user: "UTC" for user in world.users}
        self.calendars = {user: {f"AQMkC-{n}=": {"name": "Calendar", "canEdit": True, "own": True}}
                          for n, user in enumerate(world.users)}
        self.add(world.seed["outlook_calendar"])

    def add(self, seed):
        unknown = set(seed) - {"zones", "calendars", "events", "hidden", "personal", "page"}
        if unknown:
            raise Broken(f"outlook_calendar's seed has no fields {sorted(unknown)}")
        self.zones.update(seed.get("zones", {}))
        for user, calendars in seed.get("calendars", {}).items():
            self.calendars[user].update(calendars)
        self.hidden.update(seed.get("hidden", []))
        self.personal.update(seed.get("personal", []))
        self.page = seed.get("page", self.page)
        for user, events in seed.get("events", {}).items():
            for event in events:
                event = dict(event)
                id_ = event.pop("id", None)
                self.store(user, self.own(user), event, id_)

    def own(self, user):
        return next(id_ for id_, one in self.calendars[user].items() if one.get("own"))

    def calendar(self, call):
        """The calendar of a path: that of its id, or the own one."""
        if "/calendars/" not in call.path:
            return self.own(call.user)
        if call.ids[0] not in self.calendars[call.user]:
            raise missing()
        return call.ids[0]

    # Events

    def version(self):
        return f'W/"v{self.world.count("version")}"'

    def store(self, user, calendar, body, id_=None):
        check(body)
        number = self.world.count("event")
        event = {"subject": "", "body": {"contentType": "text", "content": ""}, "attendees": [],
                 "location": {"displayName": ""}, "isAllDay": False, "showAs": "busy",
                 # The default of a mailbox.
                 "isReminderOn": True, "reminderMinutesBeforeStart": 15,
                 **copy.deepcopy(body)}
        event.update({"id": id_ or f"AAkAE-{number}=", "iCalUId": f"uid{number}", "etag": self.version(),
                      "calendar": calendar, "user": user, "organizer": event.pop("from", user),
                      "exceptions": {}, "cancelled": set()})
        check_recurrence(event)
        self.guests(event)
        self.events[event["id"]] = event
        self.invite(event)
        return event

    @staticmethod
    def guests(event):
        for guest in event["attendees"]:
            guest.setdefault("status", {"response": "none", "time": "0001-01-01T00:00:00Z"})
            guest["emailAddress"].setdefault("name", guest["emailAddress"]["address"])
            guest.setdefault("type", "required")

    def invite(self, event):
        """Brings the copies of the guests up to date."""
        if event["organizer"] != event["user"]:
            return
        guests = {guest["emailAddress"]["address"].lower() for guest in event["attendees"]}
        copies = {one["user"]: one for one in self.events.values()
                  if one["iCalUId"] == event["iCalUId"] and one is not event}
        for user in (guests & set(self.world.users)) - {event["user"]}:
            old = copies.pop(user, None)
            id_ = old["id"] if old else f"AAkAE-{self.world.count('event')}="
            self.events[id_] = {**copy.deepcopy(event), "id": id_, "user": user,
                                "calendar": self.own(user)}
        for gone in copies.values():
            del self.events[gone["id"]]

    def resource(self, event, start=None):
        """An event as it is shown: a single one, a series, or one of a series."""
        found = {name: copy.deepcopy(event[name]) for name in
                 ("id", "subject", "body", "location", "isAllDay", "showAs", "attendees", "iCalUId",
                  "isReminderOn", "reminderMinutesBeforeStart")}
        first = local(event["start"])
        span = local(event["end"]) - first
        series = event.get("recurrence")
        if start is not None:
            day = start.strftime("%Y-%m-%d")
            changed = event["exceptions"].get(day)
            id_ = f"{event['id'].rstrip('=')}o{day.replace('-', '')}="
            of = {"seriesMasterId": event["id"], "id": id_, "originalStart": self.point(
                event, start, event["start"]["timeZone"])["dateTime"][:19] + "Z"}
            if changed:
                return {**self.resource({**changed, "recurrence": None}), **of, "type": "exception",
                        "recurrence": None}
            found.update(of, type="occurrence")
            first = start
        else:
            found["type"] = "seriesMaster" if series else "singleInstance"
            found["recurrence"] = copy.deepcopy(series) or None
        at = event["start"]["timeZone"]
        if event["isAllDay"]:
            found["start"], found["end"] = shown(first), shown(first + span)
        else:
            begin = self.point(event, first, at)
            length = instant(event["end"]) - instant(event["start"])
            found["start"] = begin
            found["end"] = shown(instant(begin) + length)
        me = event["organizer"] == event["user"]
        found.update({
            "@odata.etag": event["etag"], "originalStartTimeZone": at,
            "originalEndTimeZone": event["end"]["timeZone"], "isCancelled": False,
            "hasAttachments": bool(event.get("attachments")),
            "responseStatus": {"response": "organizer" if me else self.response(event)},
            "isOrganizer": me, "transactionId": event.get("transactionId") if me else None,
            "organizer": {"emailAddress": {"name": event["organizer"],
                                           "address": event["organizer"]}},
            "isOnlineMeeting": event.get("isOnlineMeeting", False),
            "onlineMeeting": ({"joinUrl": f"https://teams.example.com/{event['iCalUId']}"}
                              if event.get("isOnlineMeeting") else None)})
        found["body"]["content"] = found["body"]["content"].replace("\n", "\r\n") + "\r\n"
        return found

    @staticmethod
    def own_guest(event):
        return [guest for guest in event["attendees"]
                if guest["emailAddress"]["address"].lower() == event["user"]]

    def response(self, event):
        for guest in self.own_guest(event):
            response = guest["status"]["response"]
            return "notResponded" if response == "none" else response
        return "none"

    @staticmethod
    def point(event, start, at):
        if event["isAllDay"]:
            return shown(start)
        # A time that the clocks skip counts from before the change.
        return shown(start.replace(tzinfo=zone(at)).astimezone(UTC))

    def expanded(self, event, start, end):
        """The events of a series, or the event itself, within a span."""
        if not event.get("recurrence"):
            found = [self.resource(event)]
        else:
            found = []
            for number, one in enumerate(starts(event)):
                # Of a series without an end, or with a moved event far away.
                far = one.replace(tzinfo=UTC) > end + datetime.timedelta(days=400)
                if far or number > INSTANCES:
                    break
                if one.strftime("%Y-%m-%d") not in event["cancelled"]:
                    found.append(self.resource(event, one))
        return [one for one in found if instant(one["end"]) > start and instant(one["start"]) < end]

    def find(self, call):
        """The event of an id, with the start of one of a series."""
        id_ = call.ids[0]
        if not id_.startswith(("AAkAE-", "review")):
            raise Refused(400, "ErrorInvalidIdMalformed", "Id is malformed.")
        if "immutableid" not in call.headers.get("prefer", "").lower():
            raise missing()
        event = self.events.get(id_)
        of = re.fullmatch(r"(.+)o(\d{8})=", id_)
        if event is None and of:
            event = self.events.get(of[1] + "=") or self.events.get(of[1])
            day = f"{of[2][:4]}-{of[2][4:6]}-{of[2][6:]}"
            if event and event.get("recurrence") and day not in event["cancelled"]:
                for one in starts(event):
                    if one.strftime("%Y-%m-%d") == day:
                        return self.mine(call, event), one
                    if one.strftime("%Y-%m-%d") > day:
                        break
            raise missing()
        if event is None:
            raise missing()
        return self.mine(call, event), None

    @staticmethod
    def mine(call, event):
        if event["user"] != call.user:
            raise missing()
        return event

    # Calls

    def calendar_resource(self, user, id_):
        one = self.calendars[user][id_]
        return {"id": id_, "name": one["name"], "canEdit": one.get("canEdit", True),
                "isDefaultCalendar": bool(one.get("own"))}

    def get_calendars(self, call):
        return page(call, [self.calendar_resource(call.user, id_)
                           for id_ in self.calendars[call.user]])

    def get_calendars_id(self, call):
        return self.calendar_resource(call.user, self.calendar(call))

    def view(self, user, calendar, start, end):
        found = []
        for event in list(self.events.values()):
            if event["user"] == user and event["calendar"] == calendar:
                found += self.expanded(event, start, end)
        return sorted(found, key=lambda one: one["start"]["dateTime"])

    def get_calendarView(self, call):
        if not {"startDateTime", "endDateTime"} <= set(call.query):
            raise Refused(400, "ErrorInvalidParameter", "This request requires a time window.")
        if call.query.get("$orderby", "start/dateTime") != "start/dateTime":
            raise Broken("this order is not played")
        start, end = (moment(call.query[name]) for name in ("startDateTime", "endDateTime"))
        call.query = {**call.query, "$top": str(min(int(call.query.get("$top", 10)), self.page))}
        return page(call, self.view(call.user, self.calendar(call), start, end))

    get_calendars_id_calendarView = get_calendarView

    def get_events(self, call):
        found = [self.resource(one) for one in self.events.values()
                 if one["user"] == call.user and one["calendar"] == self.calendar(call)]
        if "$filter" in call.query:
            found = [one for one in found if Filter(call.query["$filter"])(one)]
        return page(call, found)

    get_calendars_id_events = get_events

    def get_events_id(self, call):
        event, start = self.find(call)
        found = self.resource(event, start)
        if "cancelledOccurrences" in call.query.get("$select", ""):
            found["cancelledOccurrences"] = [f"OID.{event['id']}.{day}"
                                             for day in sorted(event["cancelled"])]
        return found

    def get_events_id_instances(self, call):
        event, _ = self.find(call)
        start, end = (moment(call.query[name]) for name in ("startDateTime", "endDateTime"))
        return page(call, self.expanded(event, start, end))

    def post_events(self, call):
        calendar = self.calendar(call)
        if not self.calendars[call.user][calendar].get("canEdit", True):
            raise Refused(403, "ErrorAccessDenied", "Access is denied.")
        key = call.body.get("transactionId")
        if key and any(one.get("transactionId") == key for one in self.events.values()):
            raise Refused(409, "ErrorDuplicateTransactionId", "Your request can't be completed. "
                          "There's an event with this transaction ID.")
        return 201, self.resource(self.store(call.user, calendar, call.body))

    post_calendars_id_events = post_events

    def checked(self, call):
        event, start = self.find(call)
        day = start and start.strftime("%Y-%m-%d")
        shown_now = self.resource(event, start)
        if call.headers.get("if-match", shown_now["@odata.etag"]) != shown_now["@odata.etag"]:
            raise Refused(412, "ErrorIrresolvableConflict", "The send or update operation could not "
                          "be performed because the change key passed in the request does not "
                          "match the current change key for the item.")
        return event, start, day

    def exception(self, event, start, day):
        """One of a series, as an event that may differ."""
        if day in event["exceptions"]:
            return event["exceptions"][day]
        now = self.resource(event, start)
        at = zone(event["start"]["timeZone"])

        def here(point):
            if event["isAllDay"]:
                return {"dateTime": point["dateTime"][:19], "timeZone": "UTC"}
            time = instant(point).astimezone(at).replace(tzinfo=None)
            return {"dateTime": time.isoformat(), "timeZone": event["start"]["timeZone"]}

        return {**copy.deepcopy(event), "start": here(now["start"]), "end": here(now["end"])}

    # Answers

    def answer(self, call, response):
        event, start = self.find(call)
        day = start and start.strftime("%Y-%m-%d")
        if event["organizer"] == event["user"]:
            raise Refused(400, "ErrorInvalidRequest", "Your request can't be completed. You can't "
                          "respond to this meeting because you're the meeting organizer.")
        copies = [event]
        if call.body.get("SendResponse", True):
            copies += [one for one in self.events.values() if one["iCalUId"] == event["iCalUId"]
                       and one["user"] == event["organizer"]]
        for one in copies:
            at = one
            if start is not None:
                at = one["exceptions"][day] = self.exception(one, start, day)
            for guest in self.own_guest({**at, "user": call.user}):
                guest["status"] = {"response": response, "time": "2026-03-01T00:00:00Z"}
            if one is not event:
                one.setdefault("answers", []).append(call.body.get("Comment"))
        # A declined event leaves the calendar.
        if response == "declined":
            if start is None:
                del self.events[event["id"]]
            else:
                event["cancelled"].add(day)
        return 202, None

    def post_events_id_accept(self, call):
        return self.answer(call, "accepted")

    def post_events_id_decline(self, call):
        return self.answer(call, "declined")

    def post_events_id_tentativelyAccept(self, call):
        return self.answer(call, "tentativelyAccepted")

    # Attachments

    def files(self, call):
        event, _ = self.find(call)
        return [({"@odata.type": "#microsoft.graph." + ("fileAttachment" if "text" in one
                                                        else "referenceAttachment"),
                  "id": f"{event['id']}-F{number}=", "name": one["name"],
                  "contentType": one.get("type"), "size": len(one.get("text", "")),
                  "isInline": False}, one)
                for number, one in enumerate(event.get("attachments", []))]

    def get_events_id_attachments(self, call):
        return page(call, [found for found, _ in self.files(call)])

    def get_events_id_attachments_id_value(self, call):
        for found, one in self.files(call):
            if found["id"] == call.ids[1] and "text" in one:
                return Media(one["text"].encode(), found["contentType"])
        raise missing()

    def patch_events_id(self, call):
        event, start, day = self.checked(call)
        body = copy.deepcopy(call.body)
        check({**{"isAllDay": event["isAllDay"]}, **body})
        if start is None:
            changed = {**event, **body}
            check_recurrence(changed)
            if {"start", "recurrence"} & set(body):
                event["exceptions"], event["cancelled"] = {}, event["cancelled"] if (
                    "start" not in body) else set()
            event.update(body)
        else:
            if "recurrence" in body:
                raise Refused(400, "ErrorPropertyValidationFailure", "An occurrence has no "
                              "recurrence.")
            base = self.exception(event, start, day)
            event["exceptions"][day] = {**base, **body, "etag": self.version()}
            self.guests(event["exceptions"][day])
            return self.resource(event, start)
        event["etag"] = self.version()
        self.guests(event)
        self.invite(event)
        return self.resource(event)

    def delete_events_id(self, call):
        event, start, day = self.checked(call)
        if start is not None:
            event["cancelled"].add(day)
            event["etag"] = self.version()
            return
        for one in list(self.events.values()):
            if one is event or (event["organizer"] == event["user"]
                                and one["iCalUId"] == event["iCalUId"]):
                del self.events[one["id"]]

    def post_calendar_getSchedule(self, call):
        if call.user in self.personal:
            raise Refused(400, "ErrorInvalidRequest", "This is not supported for personal accounts.")
        body = call.body
        start, end = instant(body["StartTime"]), instant(body["EndTime"])
        return {"value": [self.schedule(address, start, end) for address in body["Schedules"]]}

    def schedule(self, address, start, end):
        user = address.lower()
        if user not in self.calendars or user in self.hidden:
            return {"scheduleId": address, "availabilityView": "", "error": {
                "message": "Unable to resolve e-mail address.",
                "responseCode": "ErrorMailRecipientNotFound"}, "scheduleItems": []}
        items = [{"status": one["showAs"], "start": one["start"], "end": one["end"]}
                 for one in self.view(user, self.own(user), start, end)]
        at = self.zones[user]
        return {"scheduleId": address, "availabilityView": "0", "scheduleItems": items,
                "workingHours": {"daysOfWeek": DAYS[:5], "startTime": "08:00:00.0000000",
                                 "endTime": "17:00:00.0000000",
                                 "timeZone": {"name": NAMES.get(at, at)}}}
