"""Gmail, in memory: mailboxes with threads, labels, drafts and a part of the query language.

The seed, by the address of a person of the world:

    labels    {user: [name]}
    messages  {user: [message]}: messages that the person has received. A message is {"raw64":
              base64 of the mail} or {"from", "to", "cc", "reply_to", "subject", "text", "html",
              "headers": {name: value}, "attachments": [{"name", "type", "data" or "base64"}]},
              each with "labels" (ids or names; default INBOX and UNREAD) and "date" (Unix seconds)

A mail that is sent is delivered to the people of the world among its recipients. As Gmail does for
its interface, it replaces the Message-ID of a mail that is sent, and keeps other headers.
"""

import base64
import email
import email.message
import email.policy
import email.utils
import html
import re

from service import Broken, Refused

SYSTEM = ["INBOX", "UNREAD", "STARRED", "IMPORTANT", "SENT", "DRAFT", "SPAM", "TRASH",
          "CATEGORY_PERSONAL", "CATEGORY_SOCIAL", "CATEGORY_PROMOTIONS", "CATEGORY_UPDATES",
          "CATEGORY_FORUMS"]
# Labels that only Gmail itself sets.
FIXED = {"SENT", "DRAFT"}
READING = {"https://mail.google.com/", "https://www.googleapis.com/auth/gmail.modify",
           "https://www.googleapis.com/auth/gmail.readonly"}
MAX_RECIPIENTS = 500
HIDDEN = {"SPAM", "TRASH"}


def decode64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encode64(data):
    return base64.urlsafe_b64encode(data).decode()


def decoded(part):
    """The bytes of a part. Of broken base64, which releases of Python read differently, those
    before the fault."""
    if (part.get("content-transfer-encoding") or "").strip().lower() != "base64":
        return part.get_payload(decode=True) or b""
    text = re.sub("[^A-Za-z0-9+/]", "", part.get_payload().split("=")[0])
    text = text[: len(text) - (len(text) % 4 == 1)]
    return base64.b64decode(text + "=" * (-len(text) % 4))


def words(text):
    return re.findall(r"\w+", text.lower())


def within(needle, hay):
    count = len(needle)
    return count == 0 or any(hay[at:at + count] == needle for at in range(len(hay) - count + 1))


def not_found():
    return Refused(404, "notFound", "Requested entity was not found.")


def invalid(message):
    return Refused(400, "invalidArgument", message)


class Message:
    def __init__(self, id_, raw, labels, date):
        self.id, self.raw, self.labels, self.date = id_, raw, set(labels), date
        self.thread = self.draft = None
        self.parsed = email.message_from_bytes(raw, policy=email.policy.default)
        self.parts, self.attachments = [], {}
        self.payload = self.part(self.parsed, "")
        self.text = "\n".join(self.parts)

    def header(self, name):
        return "\n".join(value for header, value in self.headers(self.parsed)
                         if header.lower() == name.lower())

    @staticmethod
    def headers(part):
        found = []
        for name, _ in part.raw_items():
            if name not in [known for known, _ in found]:
                try:
                    values = part.get_all(name)
                except Exception:  # a header that the parser cannot read
                    values = [value for known, value in part.raw_items() if known == name]
                found += [(name, re.sub(r"[\r\n]+", " ", str(value))) for value in values]
        return [(name, value.encode("utf-8", "replace").decode()) for name, value in found]

    def ids(self, name):
        return re.findall(r"<([^<>\s]+)>", self.header(name))

    def subject(self):
        return re.sub(r"^((re|fwd?):\s*)+", "", self.header("subject").strip(), flags=re.I)

    def addresses(self, *names):
        return [address.lower() for _, address in
                email.utils.getaddresses([self.header(name) for name in names]) if address]

    def part(self, part, number):
        headers = [{"name": name, "value": value} for name, value in self.headers(part)]
        try:
            file = part.get_filename() or ""
        except Exception:
            file = ""
        found = {"partId": number, "mimeType": part.get_content_type(), "filename": file,
                 "headers": headers, "body": {"size": 0}}
        inner = part.get_payload() if part.is_multipart() else []
        if inner and part.get_content_maintype() == "multipart":
            numbers = [f"{number}.{n}" if number else str(n) for n in range(len(inner))]
            found["parts"] = [self.part(one, id_) for one, id_ in zip(inner, numbers)]
            return found
        data = (b"".join(one.as_bytes() for one in inner) if inner
                else decoded(part))
        found["body"] = {"size": len(data)}
        if file or part.get_content_disposition() == "attachment" or inner:
            found["body"]["attachmentId"] = id_ = f"ANGj{len(self.attachments)}-{number or 'x'}"
            self.attachments[id_] = data
        else:
            found["body"]["data"] = encode64(data)
            if part.get_content_maintype() == "text":
                charset = part.get_content_charset("utf-8")
                try:
                    text = data.decode(charset, "replace")
                except LookupError:
                    text = data.decode("utf-8", "replace")
                if part.get_content_type() == "text/html":
                    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
                self.parts.append(text)
        return found

    def resource(self, format_="full", headers=()):
        found = {"id": self.id, "threadId": self.thread, "labelIds": sorted(self.labels),
                 "snippet": html.escape(" ".join(self.text.split())[:120]), "historyId": "1",
                 "internalDate": str(int(self.date * 1000)), "sizeEstimate": len(self.raw)}
        if format_ == "raw":
            found["raw"] = encode64(self.raw)
        elif format_ == "full":
            found["payload"] = self.payload
        elif format_ == "metadata":
            wanted = {name.lower() for name in headers}
            found["payload"] = {
                "partId": "", "mimeType": self.payload["mimeType"],
                "headers": [one for one in self.payload["headers"]
                            if not wanted or one["name"].lower() in wanted]}
        return found


class Query:
    """The query language: words, "phrases", operators, -, OR, (all of) and {one of}."""

    TOKEN = re.compile(r'\s*(-?)(?:([a-z0-9]+):)?("[^"]*"|[(){}]|[^\s(){}"]+)', re.I)
    OPERATORS = {"from", "to", "cc", "bcc", "subject", "label", "in", "is", "has", "after", "before",
                 "newer", "older", "rfc822msgid"}

    def __init__(self, box, text):
        self.box, self.tokens, self.at, end = box, [], 0, 0
        while end < len(text.rstrip()):
            found = self.TOKEN.match(text, end)
            if not found:  # a quote that does not end
                end += 1
                continue
            minus, operator, value = found.groups()
            if operator and operator.lower() not in self.OPERATORS:
                operator, value = None, f"{operator}:{value}"
            self.tokens.append((bool(minus), operator and operator.lower(), value))
            end = found.end()
        self.test = self.group(None)

    def group(self, close):
        tests, alternatives = [], close == "}"
        while self.at < len(self.tokens):
            minus, operator, value = self.tokens[self.at]
            self.at += 1
            if not operator and value in (")", "}"):
                if value == close:
                    break
                continue
            if not operator and value == "OR" and tests and self.at < len(self.tokens):
                left, right = tests.pop(), self.one()
                tests.append(lambda m, left=left, right=right: left(m) or right(m))
                continue
            self.at -= 1
            tests.append(self.one())
        either = any if alternatives else all
        return lambda m: either(test(m) for test in tests) if tests else True

    def one(self):
        minus, operator, value = self.tokens[self.at]
        self.at += 1
        if value in ("(", "{"):
            test = self.group(")" if value == "(" else "}")
        else:
            test = self.condition(operator, value.strip('"'))
        return (lambda m: not test(m)) if minus else test

    def condition(self, operator, value):
        if operator is None:
            needle = words(value)
            return lambda m: any(within(needle, words(text)) for text in
                                 [m.header(name) for name in ("from", "to", "cc", "subject")]
                                 + [m.text])
        if operator in ("from", "to", "cc", "bcc", "subject"):
            needle = words(value)
            return lambda m: within(needle, words(m.header(operator)))
        if operator == "rfc822msgid":
            return lambda m: value.strip("<>") in m.ids("message-id")
        if operator == "has":
            return lambda m: value.lower() == "attachment" and bool(m.attachments)
        if operator == "is":
            known = {"unread": lambda m: "UNREAD" in m.labels,
                     "read": lambda m: "UNREAD" not in m.labels,
                     "starred": lambda m: "STARRED" in m.labels,
                     "important": lambda m: "IMPORTANT" in m.labels}
            return known.get(value.lower(), lambda m: False)
        if operator in ("label", "in"):
            if value.lower() == "anywhere":
                return lambda m: True
            wanted = value.lower().replace(" ", "-")
            ids = {id_ for id_, name in self.box.names().items()
                   if name.lower().replace(" ", "-").replace("/", "-") == wanted}
            if wanted in ("drafts", "draft"):
                ids = {"DRAFT"}
            return lambda m: bool(ids & m.labels)
        moment = self.moment(value)
        if operator in ("after", "newer"):
            return lambda m: m.date >= moment
        return lambda m: m.date < moment

    @staticmethod
    def moment(value):
        if re.fullmatch(r"\d{5,}", value):
            return int(value)
        found = re.fullmatch(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})", value)
        if not found:
            return 0
        year, month, day = map(int, found.groups())
        # Midnight in California, 8 hours behind.
        return email.utils.mktime_tz((year, month, day, 8, 0, 0, 0, 1, -1, 0))


class Box:
    """The mailbox of a person."""

    def __init__(self, world, user):
        self.world, self.user = world, user
        self.messages, self.labels, self.drafts = {}, {}, {}

    def names(self):
        return {**{name: name for name in SYSTEM}, **self.labels}

    def label(self, name):
        if name in SYSTEM:
            return name
        for id_, known in self.labels.items():
            if known.lower() == name.lower():
                return id_
        id_ = f"Label_{self.world.count('label')}"
        self.labels[id_] = name
        return id_

    def put(self, raw, labels, date, thread=None):
        message = Message(self.world.new_id("m"), raw, labels, date)
        message.thread = self.threaded(message, thread)
        self.messages[message.id] = message
        return message

    # Gmail's rule: a reference to a mail of the thread, and the same subject.
    def threaded(self, message, wanted):
        if wanted and wanted not in {one.thread for one in self.messages.values()}:
            raise not_found()
        references = set(message.ids("references") + message.ids("in-reply-to"))
        for one in self.messages.values():
            if (references & set(one.ids("message-id")) and one.subject() == message.subject()
                    and wanted in (None, one.thread)):
                return one.thread
        return message.id


class Gmail:
    def __init__(self, world):
        self.world = world
        self.boxes = {user: Box(world, user) for user in world.users}
        self.add(world.seed["gmail"])

    def add(self, seed):
        unknown = set(seed) - {"labels", "messages"}
        if unknown:
            raise Broken(f"gmail's seed has no fields {sorted(unknown)}")
        for user, names in seed.get("labels", {}).items():
            for name in names:
                self.boxes[user].label(name)
        for user, messages in seed.get("messages", {}).items():
            box = self.boxes[user]
            for one in messages:
                raw = decode64(one["raw64"]) if "raw64" in one else self.write(one, user)
                labels = {box.label(name) for name in one.get("labels", ["INBOX", "UNREAD"])}
                box.put(raw, labels, one.get("date", self.world.now()))

    def write(self, fields, user):
        mail = email.message.EmailMessage()
        mail["From"] = fields.get("from", "bob@example.com")
        mail["To"] = fields.get("to", user)
        for name, header in (("cc", "Cc"), ("reply_to", "Reply-To")):
            if name in fields:
                mail[header] = fields[name]
        mail["Subject"] = fields.get("subject", "")
        mail["Date"] = email.utils.formatdate(fields.get("date", self.world.now()))
        for name, value in fields.get("headers", {}).items():
            mail[name] = value
        if "message-id" not in {name.lower() for name in fields.get("headers", {})}:
            mail["Message-ID"] = f"<{self.world.new_id('seed')}@example.com>"
        if "text" in fields or "html" not in fields:
            mail.set_content(fields.get("text", ""))
            if "html" in fields:
                mail.add_alternative(fields["html"], subtype="html")
        else:
            mail.set_content(fields["html"], subtype="html")
        for one in fields.get("attachments", []):
            main, sub = one["type"].split("/")
            data = base64.b64decode(one["base64"]) if "base64" in one else one["data"].encode()
            mail.add_attachment(data, maintype=main, subtype=sub,
                                filename=one["name"])
        return mail.as_bytes()

    def box(self, call):
        if call.params["userId"] not in ("me", call.user):
            raise Refused(403, "forbidden", "Delegation denied for " + call.user)
        return self.boxes[call.user]

    def message(self, call, name="id"):
        message = self.box(call).messages.get(call.params[name])
        if message is None:
            raise not_found()
        return message

    def readable(self, call, format_):
        if format_ in ("full", "raw") and not call.scopes & READING:
            raise Refused(403, "forbidden", "Metadata scope doesn't allow format FULL")

    # Profile and labels

    def users_getProfile(self, call):
        box = self.box(call)
        threads = {message.thread for message in box.messages.values()}
        return {"emailAddress": box.user, "messagesTotal": len(box.messages),
                "threadsTotal": len(threads), "historyId": "1"}

    @staticmethod
    def label_resource(id_, name):
        return {"id": id_, "name": name, "type": "system" if id_ in SYSTEM else "user"}

    def users_labels_list(self, call):
        return {"labels": [self.label_resource(id_, name)
                           for id_, name in self.box(call).names().items()]}

    def users_labels_create(self, call):
        box, name = self.box(call), (call.body or {}).get("name", "")
        if not name.strip() or name.upper() in SYSTEM:
            raise invalid("Invalid label name")
        if name.lower() in [known.lower() for known in box.labels.values()]:
            raise Refused(409, "aborted", "Label name exists or conflicts")
        return self.label_resource(box.label(name), name)

    # Reading

    def users_messages_list(self, call):
        box, query = self.box(call), call.params.get("q", "")
        if query and not call.scopes & READING:
            raise Refused(403, "forbidden", "Metadata scope does not support 'q' parameter")
        labels = call.params.get("labelIds", [])
        unknown = [id_ for id_ in labels if id_ not in box.names()]
        if unknown:
            raise invalid(f"Invalid label: {unknown[0]}")
        test = Query(box, query).test
        everywhere = call.params.get("includeSpamTrash") or re.search(r"\bin:\S", query)
        found = [one for one in box.messages.values()
                 if set(labels) <= one.labels and test(one)
                 and (everywhere or HIDDEN & set(labels) or not HIDDEN & one.labels)]
        found.sort(key=lambda one: (-one.date, -int(one.id[1:])))
        first = int(call.params.get("pageToken", "0"))
        last = first + min(call.params.get("maxResults", 100), 500)
        answer = {"messages": [{"id": one.id, "threadId": one.thread}
                               for one in found[first:last]],
                  "resultSizeEstimate": len(found)}
        if last < len(found):
            answer["nextPageToken"] = str(last)
        if not answer["messages"]:
            del answer["messages"]
        return answer

    def users_messages_get(self, call):
        format_ = call.params.get("format", "full")
        message = self.message(call)
        self.readable(call, format_)
        return message.resource(format_, call.params.get("metadataHeaders", []))

    def users_messages_attachments_get(self, call):
        data = self.message(call, "messageId").attachments.get(call.params["id"])
        if data is None:
            raise invalid("Invalid attachment token")
        return {"size": len(data), "data": encode64(data)}

    def users_threads_get(self, call):
        format_ = call.params.get("format", "full")
        self.readable(call, format_)
        found = [one for one in self.box(call).messages.values()
                 if one.thread == call.params["id"]]
        if not found:
            raise not_found()
        found.sort(key=lambda one: (one.date, int(one.id[1:])))
        headers = call.params.get("metadataHeaders", [])
        return {"id": call.params["id"], "historyId": "1",
                "messages": [one.resource(format_, headers) for one in found]}

    # Labels of messages

    def change(self, box, messages, body):
        add, remove = body.get("addLabelIds", []), body.get("removeLabelIds", [])
        for id_ in add + remove:
            if id_ not in box.names():
                raise invalid(f"Invalid label: {id_}")
            if id_ in FIXED:
                raise invalid(f"Cannot modify label: {id_}")
        for message in messages:
            message.labels = (message.labels | set(add)) - set(remove)

    def users_messages_modify(self, call):
        message = self.message(call)
        self.change(self.box(call), [message], call.body or {})
        return message.resource("minimal")

    def users_messages_batchModify(self, call):
        box, body = self.box(call), call.body or {}
        if len(body.get("ids", [])) > 1000:
            raise invalid("Too many ids")
        known = [box.messages[id_] for id_ in body.get("ids", []) if id_ in box.messages]
        self.change(box, known, body)

    # Sending

    def raw(self, call, message):
        if call.media is not None:
            return call.media
        if not message.get("raw"):
            raise invalid("'raw' RFC822 payload message string or uploading message via "
                          "/upload/* URL required")
        return decode64(message["raw"])

    def users_messages_send(self, call):
        body = call.body or {}
        return self.send(self.box(call), self.raw(call, body), body.get("threadId"), call.now)

    def send(self, box, raw, thread, now):
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        recipients = {address.lower() for name in ("To", "Cc", "Bcc") for _, address in
                      email.utils.getaddresses([str(v) for v in mail.get_all(name, [])])}
        if not recipients:
            raise invalid("Recipient address required")
        if any("@" not in address for address in recipients):
            raise invalid("Invalid To header")
        if len(recipients) > MAX_RECIPIENTS:
            raise invalid("Too many recipients")
        number = self.world.count("sent")
        head, separator, rest = self.split(raw)
        own = ["message-id"] if "from" in mail else ["message-id", "from"]
        head = self.without(head, own)
        head = f"Message-ID: <CA{number}@mail.gmail.com>\r\n".encode() + head
        if "from" not in mail:
            head = f"From: {box.user}\r\n".encode() + head
        labels = {"SENT"} | ({"INBOX", "UNREAD"} if box.user in recipients else set())
        sent = box.put(head + separator + rest, labels, now, thread)
        for user in recipients - {box.user}:
            if user in self.boxes:
                raw = self.without(head, ["bcc"]) + separator + rest
                self.boxes[user].put(raw, {"INBOX", "UNREAD"}, now)
        return {"id": sent.id, "threadId": sent.thread, "labelIds": sorted(sent.labels)}

    @staticmethod
    def split(raw):
        found = re.search(rb"\r?\n\r?\n", raw)
        return (raw[:found.start() + 2], b"\r\n", raw[found.end():]) if found else (raw, b"", b"")

    @staticmethod
    def without(head, names):
        fields = re.split(rb"(?<=\n)(?=[^ \t])", head)
        return b"".join(one for one in fields
                        if one.split(b":")[0].strip().lower().decode("latin-1") not in names)

    # Drafts

    @staticmethod
    def draft_resource(id_, message, format_="minimal"):
        return {"id": id_, "message": message.resource(format_)}

    def store_draft(self, call, id_):
        box, message = self.box(call), (call.body or {}).get("message", {})
        stored = box.put(self.raw(call, message), {"DRAFT"}, call.now, message.get("threadId"))
        old = box.drafts.get(id_)
        if old:
            del box.messages[old.id]
        box.drafts[id_] = stored
        return self.draft_resource(id_, stored)

    def users_drafts_create(self, call):
        return self.store_draft(call, self.world.new_id("r"))

    def draft(self, call, id_):
        draft = self.box(call).drafts.get(id_)
        if draft is None:
            raise not_found()
        return draft

    def users_drafts_update(self, call):
        self.draft(call, call.params["id"])
        return self.store_draft(call, call.params["id"])

    def users_drafts_get(self, call):
        draft = self.draft(call, call.params["id"])
        return self.draft_resource(call.params["id"], draft, call.params.get("format", "full"))

    def users_drafts_list(self, call):
        box = self.box(call)
        test = Query(box, call.params.get("q", "")).test
        drafts = [{"id": id_, "message": {"id": one.id, "threadId": one.thread}}
                  for id_, one in box.drafts.items() if test(one)]
        answer = {"resultSizeEstimate": len(drafts)}
        return {**answer, "drafts": drafts} if drafts else answer

    def users_drafts_delete(self, call):
        draft = self.draft(call, call.params["id"])
        box = self.box(call)
        del box.messages[draft.id], box.drafts[call.params["id"]]

    def users_drafts_send(self, call):
        body, box = call.body or {}, self.box(call)
        id_ = body.get("id", "")
        draft, message = self.draft(call, id_), body.get("message", {})
        raw = draft.raw if call.media is None and not message.get("raw") else self.raw(call, message)
        thread = message.get("threadId") or (draft.thread if draft.thread != draft.id else None)
        sent = self.send(box, raw, thread, call.now)
        del box.messages[draft.id], box.drafts[id_]
        return sent
