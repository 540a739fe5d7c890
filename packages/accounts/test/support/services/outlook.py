"""Outlook's mail, in memory: mailboxes with folders, categories, drafts and a part of the language of
searches.

The seed is that of Gmail: {"messages": {user: [message]}}, where a message may have "folder" (the
name of a folder, default "inbox"), "categories", "read" and "draft".

Messages are stored as they were written, and shown as Exchange shows them: one text, and the list of
attachments.
"""

import base64
import datetime
import email
import email.message
import email.policy
import email.utils
import functools
import html
import re

from gmail import Gmail, Message, within, words
from graph import Filter, page
from service import Broken, Media, Refused

KNOWN = {"inbox": "Inbox", "sentitems": "Sent Items", "drafts": "Drafts",
         "deleteditems": "Deleted Items", "junkemail": "Junk Email", "archive": "Archive"}
MAX_RECIPIENTS = 500
MAX_REQUEST = 4 * 1000 * 1000


def iso(seconds):
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return time.isoformat().replace("+00:00", "Z")


def missing():
    return Refused(404, "ErrorItemNotFound", "The specified object was not found in the store.")


class Search:
    """The language of searches: "phrases", property:"phrase", received>=day, AND, OR, NOT, ()."""

    TOKEN = re.compile(r'\s*(?:(\()|(\))|(AND|OR|NOT)\b|(?:(\w+)(:|>=|<=))?("[^"]*"|[^\s()"]+))')

    def __init__(self, text):
        if not re.fullmatch(r'"(?:[^"\\]|\\.)*"', text):
            raise Refused(400, "BadRequest", "Syntax error: the search is not in quotes.")
        text = re.sub(r"\\(.)", r"\1", text[1:-1])
        self.tokens, at = [], 0
        while at < len(text.rstrip()):
            found = self.TOKEN.match(text, at)
            if not found:
                raise Refused(400, "BadRequest", f"Syntax error: {text[at:]!r}.")
            self.tokens.append(found.groups())
            at = found.end()
        self.at = 0
        self.test = self.either()
        if self.at < len(self.tokens):
            raise Refused(400, "BadRequest", "Syntax error: a bracket.")

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else (None,) * 6

    def either(self):
        tests = [self.all()]
        while self.peek()[2] == "OR":
            self.at += 1
            tests.append(self.all())
        return lambda m: any(test(m) for test in tests)

    def all(self):
        tests = [self.one()]
        while self.peek()[2] == "AND":
            self.at += 1
            tests.append(self.one())
        return lambda m: all(test(m) for test in tests)

    def one(self):
        opens, _closes, operator, name, how, value = self.peek()
        self.at += 1
        if operator == "NOT":
            test = self.one()
            return lambda m: not test(m)
        if opens:
            test = self.either()
            if not self.peek()[1]:
                raise Refused(400, "BadRequest", "Syntax error: a bracket.")
            self.at += 1
            return test
        if value is None:
            raise Refused(400, "BadRequest", "Syntax error in the search.")
        value = value.strip('"')
        if name == "received":
            day = (lambda m: iso(m.date)[:10])
            return (lambda m: day(m) >= value) if how == ">=" else (lambda m: day(m) <= value)
        needle = words(value)
        if not needle:
            raise Refused(400, "BadRequest", "Syntax error: an empty phrase.")
        if name in ("from", "to", "cc", "subject"):
            return lambda m: within(needle, words(m.header(name)))
        return lambda m: any(within(needle, words(text)) for text in
                             (m.header("from"), m.header("subject"), m.text))


class Item(Message):
    """A message of a mailbox."""

    def __init__(self, id_, raw, folder, date):
        super().__init__(id_, raw, set(), date)
        self.folder, self.read, self.flagged, self.importance = folder, False, False, "normal"
        self.categories, self.draft = [], False

    def recipients(self, name):
        pairs = email.utils.getaddresses([self.header(name)])
        return [{"emailAddress": {"name": one or address, "address": address}}
                for one, address in pairs if address]

    def shown_body(self):
        """The one text that Exchange keeps."""
        texts = {}
        for part in self.parsed.walk():
            if part.is_multipart() or part.get_content_disposition() == "attachment":
                continue
            if part.get_content_type() in ("text/plain", "text/html"):
                try:
                    texts.setdefault(part.get_content_type(), part.get_content())
                except Exception:
                    continue
        if "text/html" in texts:
            return {"contentType": "html", "content": texts["text/html"]}
        return {"contentType": "text", "content": texts.get("text/plain", "")}

    def files(self):
        found = []

        def walk(part):
            name = part.get_filename()
            if part.get_content_type() == "message/rfc822":
                inner = part.get_payload()[0]
                data = inner.as_bytes()
                found.append(({"@odata.type": "#microsoft.graph.itemAttachment",
                               "name": name or str(inner["Subject"]), "contentType": None}, data))
            elif part.is_multipart():
                for one in part.get_payload():
                    walk(one)
            elif part.get_content_disposition() == "attachment" or name:
                data = part.get_payload(decode=True) or b""
                found.append(({"@odata.type": "#microsoft.graph.fileAttachment", "name": name,
                               "contentType": part.get_content_type()}, data))

        walk(self.parsed)
        return [({**one, "id": f"{self.id}-F{number}=", "size": len(data), "isInline": False},
                 data) for number, (one, data) in enumerate(found)]

    @functools.cached_property
    def written(self):
        """The fields that do not change."""
        sender = self.recipients("from")
        text = " ".join(re.sub(r"<[^>]*>", " ", self.text).split())
        return {"id": self.id, "subject": self.header("subject"),
                "from": sender[0] if sender else None, "replyTo": self.recipients("reply-to"),
                "toRecipients": self.recipients("to"), "ccRecipients": self.recipients("cc"),
                "internetMessageId": "".join(f"<{one}>" for one in self.ids("message-id")),
                "receivedDateTime": iso(self.date), "bodyPreview": html.unescape(text)[:255],
                "body": self.shown_body(), "hasAttachments": bool(self.files())}

    def resource(self, expand=""):
        found = {**self.written, "conversationId": self.thread, "isRead": self.read,
                 "isDraft": self.draft, "importance": self.importance,
                 "flag": {"flagStatus": "flagged" if self.flagged else "notFlagged"},
                 "categories": self.categories, "parentFolderId": self.folder}
        ids = re.findall(r"singleValueExtendedProperties\(\$filter=(.*?)\)", expand)
        if ids:
            wanted = re.findall(r"id eq '([^']*)'", ids[0])
            names = {"String 0x1039": "references", "String 0x1042": "in-reply-to"}
            found["singleValueExtendedProperties"] = [
                {"id": id_, "value": self.header(names[id_])} for id_ in wanted
                if self.header(names[id_])]
        if re.search(r"(^|,)attachments\b", expand):
            names = re.search(r"attachments\(\$select=([^)]*)\)", expand)
            kept = set(names[1].split(",")) | {"@odata.type"} if names else None
            found["attachments"] = [
                {name: value for name, value in one.items() if kept is None or name in kept}
                for one, _data in self.files()]
        return found


class Box:
    def __init__(self, world, user):
        self.world, self.user, self.messages = world, user, {}
        self.folders = {f"AQMk-{name}-{world.number}=": name for name in KNOWN.values()}

    def known(self, name):
        """The id of a folder by its id or by the name that the interface has for it."""
        wanted = KNOWN.get(name.lower(), None)
        for id_, one in self.folders.items():
            if id_ == name or one == wanted:
                return id_
        return None

    def folder(self, name):
        """The folder of a name, which is made if it is not there."""
        known = self.known(name)
        if known is None:
            known = next((id_ for id_, one in self.folders.items() if one == name), None)
        if known is None:
            known = f"AQMk-{self.world.count('folder')}-{self.world.number}="
            self.folders[known] = name
        return known

    def put(self, raw, folder, date):
        item = Item(f"AAkAL-{self.world.count('item')}=", raw, self.known(folder) or folder, date)
        item.thread = self.threaded(item)
        self.messages[item.id] = item
        return item

    def threaded(self, item):
        references = set(item.ids("references") + item.ids("in-reply-to"))
        for one in self.messages.values():
            if references & set(one.ids("message-id")) and one.subject() == item.subject():
                return one.thread
        return f"AAQk+{self.world.count('conversation')}/'="


class Outlook:
    def __init__(self, world):
        self.world = world
        self.boxes = {user: Box(world, user) for user in world.users}
        self.add(world.seed["outlook"])

    def add(self, seed):
        unknown = set(seed) - {"messages", "folders"}
        if unknown:
            raise Broken(f"outlook's seed has no fields {sorted(unknown)}")
        for user, names in seed.get("folders", {}).items():
            for name in names:
                self.boxes[user].folder(name)
        for user, messages in seed.get("messages", {}).items():
            box = self.boxes[user]
            for one in messages:
                raw = (base64.b64decode(one["raw64"]) if "raw64" in one
                       else Gmail.write(self, one, user))
                date = one.get("date", self.world.now())
                item = box.put(raw, box.folder(one.get("folder", "inbox")), date)
                item.categories = list(one.get("categories", []))
                item.read, item.draft = one.get("read", False), one.get("draft", False)

    def box(self, call):
        return self.boxes[call.user]

    def item(self, call):
        id_ = call.ids[0]
        if not re.fullmatch(r"AAkAL-\d+=", id_) and not id_.startswith("AAkAL"):
            raise Refused(400, "ErrorInvalidIdMalformed", "Id is malformed.")
        if "immutableid" not in call.headers.get("prefer", "").lower():
            raise missing()
        item = self.box(call).messages.get(id_)
        if item is None:
            raise missing()
        return item

    # Folders

    def folder_of(self, call):
        id_ = self.box(call).known(call.ids[0])
        if id_ is None:
            raise missing()
        return id_

    def folder_resource(self, call, id_):
        return {"id": id_, "displayName": self.box(call).folders[id_]}

    def get_mailFolders_id(self, call):
        return self.folder_resource(call, self.folder_of(call))

    def get_mailFolders_delta(self, call):
        found = [self.folder_resource(call, id_) for id_ in self.box(call).folders]
        answer = page(call, found, default=2)
        if "@odata.nextLink" not in answer:
            answer["@odata.deltaLink"] = f"{call.base}{call.path}?$deltatoken=x"
        return answer

    # Reading

    def messages(self, call, folder):
        query, found = call.query, self.box(call).messages.values()
        expand = query.get("$expand", "")
        items = [one for one in found if folder in (None, one.folder)]
        if "$search" in query:
            if "$filter" in query or "$orderby" in query:
                raise Refused(400, "SearchWithFilter", "The query parameter '$filter' is not "
                              "supported with '$search'.")
            test = Search(query["$search"]).test
            items = [one for one in items if test(one)]
        if "$filter" in query:
            test = Filter(query["$filter"])
            order = query.get("$orderby", "").split(" ")[0]
            if order and order != test.names[0]:
                raise Refused(400, "InefficientFilter", "The restriction or sort order is too "
                              "complex for this operation.")
            items = [one for one in items if test(one.resource())]
        items.sort(key=lambda one: (-one.date, -int(re.sub(r"\D", "", one.id))))
        return page(call, [one.resource(expand) for one in items])

    def get_messages(self, call):
        return self.messages(call, None)

    def get_mailFolders_id_messages(self, call):
        return self.messages(call, self.folder_of(call))

    def get_messages_id(self, call):
        return self.item(call).resource(call.query.get("$expand", ""))

    def get_messages_id_value(self, call):
        return Media(self.item(call).raw, "message/rfc822")

    def get_messages_id_attachments_id_value(self, call):
        for one, data in self.item(call).files():
            if one["id"] == call.ids[1]:
                return Media(data, one["contentType"] or "message/rfc822")
        raise missing()

    # Changes

    def patch_messages_id(self, call):
        item, body = self.item(call), dict(call.body)
        item.read = body.pop("isRead", item.read)
        item.importance = body.pop("importance", item.importance)
        item.categories = body.pop("categories", item.categories)
        item.flagged = body.pop("flag", {"flagStatus": "flagged" if item.flagged else ""}
                                )["flagStatus"] == "flagged"
        if body:
            raise Broken(f"a change of {sorted(body)} is not played")
        return item.resource()

    def post_messages_id_move(self, call):
        item = self.item(call)
        folder = self.box(call).known(call.body["DestinationId"])
        if folder is None:
            raise missing()
        item.folder = folder
        return 201, item.resource()

    def post_messages_id_permanentDelete(self, call):
        del self.box(call).messages[self.item(call).id]

    # Writing

    def raw(self, call):
        if not isinstance(call.body, bytes):
            raise Broken("only mails in MIME are played")
        if len(call.body) > MAX_REQUEST:
            raise Refused(413, "RequestEntityTooLarge", "The request is too large.")
        try:
            return base64.b64decode(call.body, validate=True)
        except ValueError:
            raise Refused(400, "ErrorMimeContentInvalidBase64String", "Invalid base64 string for "
                          "MIME content.") from None

    @staticmethod
    def with_sender(raw, user):
        """Exchange writes the sender, and refuses another one."""
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        addresses = [one for _, one in email.utils.getaddresses([str(mail["From"] or user)])]
        if addresses != [user]:
            raise Refused(403, "ErrorSendAsDenied", "The user account which was used to submit "
                          "this request does not have the right to send mail on behalf of the "
                          "specified sending account.")
        return raw if "from" in mail else f"From: {user}\r\n".encode() + raw

    def post_messages(self, call):
        item = self.box(call).put(self.with_sender(self.raw(call), call.user), "drafts", call.now)
        item.draft = item.read = True
        return 201, item.resource()

    def post_sendMail(self, call):
        raw = self.with_sender(self.raw(call), call.user)
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        recipients = {address.lower() for name in ("To", "Cc", "Bcc") for _, address in
                      email.utils.getaddresses([str(v) for v in mail.get_all(name, [])])}
        if not recipients:
            raise Refused(400, "ErrorInvalidRecipients", "At least one recipient isn't valid.")
        if len(recipients) > MAX_RECIPIENTS:
            raise Refused(400, "ErrorExceededMaxRecipientLimit", "Too many recipients.")
        sent = self.box(call).put(raw, "sentitems", call.now)
        sent.read = True
        head, separator, rest = Gmail.split(raw)
        raw = Gmail.without(head, ["bcc"]) + separator + rest
        for user in recipients:
            if user in self.boxes:
                self.boxes[user].put(raw, "inbox", call.now)
        return 202, None
