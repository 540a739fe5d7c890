"""Google Drive, version 3, in memory, as far as this project uses it.

A seed has
    files    [{"id", "name", "mimeType", "parents": [id], "owner", "text" or "data" (base64) or
             "sheets": {name: [[cell]]}, "permissions": [{"type", "role", "emailAddress"...}],
             "driveId", "trashed", "modifiedTime", "shortcutDetails", "app" (made by this client)}];
             the id of a file that is there changes the fields that are given
    delete   [id]: gone for everybody
    unshare  [{"id", "user"}]: takes a person's permission away
    page     the most files or changes of one page, fewer than a client asks for
    export_limit  bytes; default 10 MB, as Google has it
    expire   true: forgets all changes until now, so that older tokens are refused with 410

Documents keep Markdown, sheets rows, presentations text. The root folder of a person has the id
"root-ADDRESS" and the alias "root". A change of a folder is reported for the folder alone.
"""

import base64
import csv
import datetime
import hashlib
import io
import re
import zipfile
from xml.sax.saxutils import escape

from service import Media, Refused

GOOGLE = "application/vnd.google-apps."
FOLDER, DOCUMENT, SHEET, SLIDES, DRAWING, SHORTCUT = (GOOGLE + name for name in (
    "folder", "document", "spreadsheet", "presentation", "drawing", "shortcut"))
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN = "application/vnd.oasis.opendocument."
# As the guide "Export MIME types for Google Workspace documents" lists them.
EXPORTS = {DOCUMENT: ("text/markdown", "text/plain", "application/pdf", "application/rtf",
                      OFFICE + "wordprocessingml.document", OPEN + "text", "application/zip",
                      "application/epub+zip"),
           SHEET: ("text/csv", XLSX, "application/pdf", OPEN + "spreadsheet", "application/zip",
                   "text/tab-separated-values"),
           SLIDES: ("text/plain", "application/pdf", OFFICE + "presentationml.presentation",
                    OPEN + "presentation", "image/jpeg", "image/png", "image/svg+xml"),
           DRAWING: ("application/pdf", "image/jpeg", "image/png", "image/svg+xml")}
ROLES = ("reader", "commenter", "writer", "fileOrganizer", "organizer", "owner")
SCOPE = "https://www.googleapis.com/auth/"
ALL = {SCOPE + "drive"}
READ = ALL | {SCOPE + "drive.readonly", SCOPE + "drive.metadata.readonly",
              SCOPE + "drive.metadata"}


def invalid(message="Invalid Value"):
    return Refused(400, "invalid", message)


def not_found(id_):
    return Refused(404, "notFound", f"File not found: {id_}.")


class Drive:
    def __init__(self, world):
        self.world = world
        self.files, self.log, self.generated = {}, [], {}
        self.page, self.export_limit, self.first, self.last = None, 10_485_760, 1, 0.0
        for user in world.users:
            self.files["root-" + user] = {
                "id": "root-" + user, "name": "My Drive", "mimeType": FOLDER, "parents": [],
                "owner": user, "permissions": [], "app": False}
            self.stamp(self.files["root-" + user])
        self.log.clear()
        self.add(world.seed["drive"])

    # Seeds and control

    def add(self, seed):
        self.page = seed.get("page", self.page)
        self.export_limit = seed.get("export_limit", self.export_limit)
        for one in seed.get("files", []):
            file = self.files.get(one.get("id"))
            seen = self.seen_by(file) if file else set()
            if file is None:
                owner = one.get("owner", next(iter(self.world.users)))
                file = {"id": one.get("id") or self.world.new_id("file"), "name": "Untitled",
                        "mimeType": "text/plain", "parents": ["root-" + owner], "owner": owner,
                        "permissions": [], "app": False}
                self.files[file["id"]] = file
            content = {"text", "data", "sheets"} & set(one)
            file.update({name: value for name, value in one.items()
                         if name not in ("text", "data", "modifiedTime")})
            if "text" in one:
                file["data"] = one["text"].encode()
            if "data" in one:
                file["data"] = base64.b64decode(one["data"])
            if file["mimeType"] == SHORTCUT and "shortcutDetails" not in file:
                raise ValueError("a shortcut without a target")
            self.stamp(file, bool(content) or "createdTime" not in file, seen)
            if "modifiedTime" in one:
                file["modifiedTime"] = one["modifiedTime"]
        for id_ in seed.get("delete", []):
            file = self.files[id_]
            seen = self.seen_by(file)
            del self.files[id_]
            self.log.append((id_, seen))
        for one in seed.get("unshare", []):
            file = self.files[one["id"]]
            seen = self.seen_by(file)
            file["permissions"] = [permission for permission in file["permissions"]
                                   if permission.get("emailAddress") != one["user"]]
            self.log.append((file["id"], seen))
        if seed.get("expire"):
            self.first = len(self.log) + 1

    def seen_by(self, file):
        return {user for user in self.world.users if self.role(file, user)}

    def stamp(self, file, content=True, seen=()):
        """Notes a change; no two changes have the same time."""
        self.last = max(self.world.now(), self.last + 0.001)
        at = datetime.datetime.fromtimestamp(self.last, datetime.timezone.utc)
        text = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"
        file.setdefault("createdTime", text)
        file["version"] = file.get("version", 0) + 1
        if content:
            file["modifiedTime"] = text
            if not file["mimeType"].startswith(GOOGLE):
                file["revision"] = f"0B{self.world.count('revision'):06}"
        self.log.append((file["id"], set(seen)))

    # Access

    def chain(self, file):
        """The file and its folders, upwards."""
        seen = []
        while file is not None and file["id"] not in seen:
            seen.append(file["id"])
            yield file
            file = self.files.get(next(iter(file["parents"]), None))

    def role(self, file, user, link=True):
        """The person's best role; without `link`, not by access that everybody has."""
        best = None
        for one in self.chain(file):
            if one["owner"] == user:
                return "owner"
            for permission in one["permissions"]:
                type_ = permission["type"]
                if (type_ == "anyone" and link or permission.get("emailAddress") == user
                        or type_ == "domain" and user.endswith("@" + permission["domain"])):
                    if best is None or ROLES.index(permission["role"]) > ROLES.index(best):
                        best = permission["role"]
        return best

    def trashed(self, file):
        return any(one.get("trashed") for one in self.chain(file))

    def visible(self, call, file):
        """drive.file shows only what this client has made, and the root folder."""
        return (self.role(file, call.user) is not None
                and (call.scopes & READ or file["app"] or file["id"] == "root-" + call.user))

    def find(self, call, id_):
        file = self.files.get("root-" + call.user if id_ == "root" else id_)
        if file is None or not self.visible(call, file):
            raise not_found(id_)
        if file.get("driveId") and not call.params.get("supportsAllDrives", True):
            raise not_found(id_)
        return file

    def writable(self, call, id_):
        file = self.find(call, id_)
        if not (call.scopes & ALL or file["app"] or file["id"] == "root-" + call.user):
            raise Refused(403, "appNotAuthorizedToFile",
                          "The user has not granted the app access to the file.")
        if self.role(file, call.user) not in ("writer", "fileOrganizer", "organizer", "owner"):
            raise Refused(403, "insufficientFilePermissions",
                          "The user does not have sufficient permissions for this file.")
        return file

    def person(self, user, call):
        return {"kind": "drive#user", "emailAddress": user, "me": user == call.user,
                "displayName": self.world.users.get(user, {}).get("name", user),
                "permissionId": permission_id(user)}

    def shown(self, call, file):
        role = self.role(file, call.user)
        answer = {
            "kind": "drive#file", "id": file["id"], "name": file["name"],
            "mimeType": file["mimeType"], "createdTime": file["createdTime"],
            "modifiedTime": file["modifiedTime"], "version": str(file["version"]),
            "ownedByMe": file["owner"] == call.user, "trashed": self.trashed(file),
            "explicitlyTrashed": bool(file.get("trashed")), "spaces": ["drive"],
            "shared": any(one["permissions"] for one in self.chain(file)),
            "webViewLink": f"https://drive.google.com/file/d/{file['id']}/view"}
        if file.get("driveId"):
            answer["driveId"] = file["driveId"]
        else:
            answer["owners"] = [self.person(file["owner"], call)]
        # A folder that the person may not see is no parent.
        parents = [id_ for id_ in file["parents"]
                   if id_ in self.files and self.role(self.files[id_], call.user)]
        if parents:
            answer["parents"] = parents
        if not file["mimeType"].startswith(GOOGLE):
            data = file.get("data", b"")
            answer.update(size=str(len(data)), headRevisionId=file["revision"],
                          md5Checksum=hashlib.md5(data).hexdigest(),
                          originalFilename=file["name"])
        if "shortcutDetails" in file:
            answer["shortcutDetails"] = file["shortcutDetails"]
        if file.get("appProperties"):
            answer["appProperties"] = file["appProperties"]
        if role in ("writer", "organizer", "owner"):
            answer["permissions"] = [permission(one) for one in self.permissions(file)]
        return answer

    def permissions(self, file):
        own = {"type": "user", "role": "owner", "emailAddress": file["owner"]}
        return [own] + file["permissions"]

    # files

    def files_get(self, call):
        file = self.find(call, call.params["fileId"])
        if call.alt != "media":
            return self.shown(call, file)
        if file["mimeType"].startswith(GOOGLE):
            raise Refused(403, "fileNotDownloadable", "Only files with binary content can be "
                          "downloaded. Use Export with Docs Editors files.")
        return Media(file.get("data", b""), file["mimeType"])

    def files_export(self, call):
        file = self.find(call, call.params["fileId"])
        type_ = call.params["mimeType"]
        if file["mimeType"] not in EXPORTS:
            raise Refused(403, "fileNotExportable", "Export only supports Docs Editors files.")
        if type_ not in EXPORTS[file["mimeType"]]:
            raise Refused(400, "badRequest", "The requested conversion is not supported.")
        data = exported(file, type_)
        if len(data) > self.export_limit:
            raise Refused(403, "exportSizeLimitExceeded",
                          "This file is too large to be exported.")
        return Media(data, type_)

    def files_list(self, call):
        q = call.params.get("q")
        test = Query(q).parse() if q else None
        order = call.params.get("orderBy")
        if order and q and "fullText" in q:
            raise Refused(403, "forbidden", "Sorting is not supported for queries with fullText "
                          "terms. Results are always in descending relevance order.")
        corpora = call.params.get("corpora", "user")
        if corpora not in ("user", "drive", "allDrives"):
            raise invalid(f"Invalid value for corpora: {corpora}")
        if (corpora == "drive") != ("driveId" in call.params):
            raise invalid("driveId must be given if, and only if, corpora is drive.")
        every = call.params.get("includeItemsFromAllDrives", False)
        if every and not call.params.get("supportsAllDrives", False) or (
                corpora != "user" and not every):
            raise invalid("corpora and includeItemsFromAllDrives need supportsAllDrives.")
        found = []
        for file in self.files.values():
            drive = file.get("driveId")
            if (file["id"].startswith("root-") or not self.visible(call, file)
                    or self.role(file, call.user, link=False) is None):
                continue
            if (corpora == "user" and drive or corpora == "drive" and
                    drive != call.params["driveId"]):
                continue
            if test is None or test(file, self, call):
                found.append(file)
        found.sort(key=lambda file: file["modifiedTime"], reverse=True)
        for key in reversed(order.split(",") if order else []):
            found.sort(**sorting(key))
        page, next_ = self.paged(call, found)
        answer = {"kind": "drive#fileList", "incompleteSearch": False,
                  "files": [self.shown(call, file) for file in page]}
        return {**answer, "nextPageToken": next_} if next_ else answer

    def paged(self, call, items):
        size = call.params.get("pageSize", 100)
        if not 1 <= size <= 1000:
            raise invalid("pageSize must be from 1 to 1000")
        size = min(size, self.page or size)
        token = call.params.get("pageToken", "~0")
        if not re.fullmatch(r"~\d+", token):
            raise invalid()
        first = int(token[1:])
        next_ = f"~{first + size}" if first + size < len(items) else None
        return items[first:first + size], next_

    def files_generateIds(self, call):
        count = call.params.get("count", 10)
        made = [f"1g{self.world.count('generated'):04}{call.user[:3]}" for _ in range(count)]
        self.generated.setdefault(call.user, set()).update(made)
        return {"kind": "drive#generatedIds", "space": "drive", "ids": made}

    def files_create(self, call):
        body = call.body or {}
        type_ = body.get("mimeType") or (call.media_type or "application/octet-stream")
        type_ = type_.split(";")[0]
        id_ = body.get("id")
        if id_ in self.files:
            raise Refused(409, "fileIdInUse", "A file already exists with the provided ID.")
        if id_:
            if type_ in EXPORTS:
                raise invalid("Generated IDs are not supported for Docs Editors formats.")
            if id_ not in self.generated.get(call.user, ()):
                raise invalid("The provided file ID is not usable.")
        parents = body.get("parents") or ["root"]
        if len(parents) > 1:
            raise invalid("A file has one parent.")
        folder = self.writable(call, parents[0])
        if folder["mimeType"] != FOLDER:
            raise Refused(403, "parentNotAFolder", "The specified parent is not a folder.")
        file = {"id": id_ or self.world.new_id("1made"), "name": body.get("name", "Untitled"),
                "mimeType": type_, "parents": [folder["id"]], "permissions": [], "app": True,
                "owner": folder["owner"] if folder.get("driveId") else call.user,
                "appProperties": body.get("appProperties", {})}
        if folder.get("driveId"):
            file["driveId"] = folder["driveId"]
        if type_ not in (FOLDER, SHORTCUT):
            self.fill(file, call)
        self.files[file["id"]] = file
        self.stamp(file)
        return self.shown(call, file)

    def fill(self, file, call):
        """Stores an upload, converted if the file is one of Google's."""
        media = call.media if call.media is not None else b""
        if file["mimeType"] == DOCUMENT:
            if call.media is not None and call.media_type.split(";")[0] not in (
                    "text/markdown", "text/plain", "text/html"):
                raise invalid("The import conversion is not supported.")
            try:
                media = (media.decode().replace("\r\n", "\n").rstrip() + "\n").encode()
            except UnicodeDecodeError:
                raise invalid("The upload is not text.") from None
        elif file["mimeType"].startswith(GOOGLE) and call.media is not None:
            raise invalid("The import conversion is not supported.")
        file["data"] = media

    def files_update(self, call):
        file = self.writable(call, call.params["fileId"])
        body = call.body or {}
        seen = self.seen_by(file)
        add = ids(call.params.get("addParents"))
        remove = ids(call.params.get("removeParents"))
        if "parents" in body:
            raise Refused(403, "fieldNotWritable", "The parents field is not directly writable "
                          "in update requests. Use the addParents and removeParents parameters.")
        folders = [self.writable(call, id_)["id"] for id_ in add]
        left = [id_ for id_ in file["parents"] if id_ not in
                [self.find(call, gone)["id"] for gone in remove]]
        if len(left) + len(folders) > 1:
            raise Refused(403, "cannotAddParent",
                          "Increasing the number of parents is not allowed")
        file["parents"] = left + folders
        if "mimeType" in body and call.media is None:
            raise invalid("The type changes only with the content.")
        for name in ("name", "trashed", "appProperties", "mimeType"):
            if name in body:
                file[name] = body[name]
        if call.media is not None:
            self.fill(file, call)
        self.stamp(file, call.media is not None, seen)
        return self.shown(call, file)

    # permissions

    def permissions_list(self, call):
        file = self.find(call, call.params["fileId"])
        page, next_ = self.paged(call, self.permissions(file))
        answer = {"kind": "drive#permissionList", "permissions": [permission(one) for one in page]}
        return {**answer, "nextPageToken": next_} if next_ else answer

    def permissions_create(self, call):
        file = self.writable(call, call.params["fileId"])
        body = call.body or {}
        type_, role = body.get("type"), body.get("role")
        if type_ not in ("user", "group", "domain", "anyone") or role not in ROLES[:3]:
            raise invalid("The permission type and role fields are required.")
        named = {"user": "emailAddress", "group": "emailAddress", "domain": "domain"}.get(type_)
        if named and not body.get(named) or set(body) - {"type", "role", named}:
            raise invalid(f"The permission needs the field {named}, and no other.")
        if named == "emailAddress" and not re.fullmatch(r"[^@\s]+@[^@\s]+", body[named]):
            raise Refused(400, "invalidSharingRequest", "Bad Request. User message: \"The email "
                          "address is not valid.\"")
        told = {"sendNotificationEmail", "emailMessage"} & set(call.params)
        if told and named != "emailAddress":
            raise invalid("Only people and groups are notified.")
        one = {key: body[key] for key in ("type", "role", named) if key}
        seen = self.seen_by(file)
        file["permissions"] = [known for known in file["permissions"]
                               if permission(known)["id"] != permission(one)["id"]] + [one]
        self.stamp(file, False, seen)
        return permission(one)

    def permissions_delete(self, call):
        file = self.writable(call, call.params["fileId"])
        id_ = call.params["permissionId"]
        left = [one for one in file["permissions"] if permission(one)["id"] != id_]
        if len(left) == len(file["permissions"]):
            raise Refused(404, "notFound", f"Permission not found: {id_}.")
        seen = self.seen_by(file)
        file["permissions"] = left
        self.stamp(file, False, seen)

    # changes

    def changes_getStartPageToken(self, call):
        return {"kind": "drive#startPageToken", "startPageToken": str(len(self.log) + 1)}

    def changes_list(self, call):
        token = call.params["pageToken"]
        if not re.fullmatch(r"[1-9]\d{0,8}", token) or int(token) > len(self.log) + 1:
            raise invalid("Invalid page token")
        if int(token) < self.first:
            raise Refused(410, "gone", "The page token is too old.")
        every = call.params.get("includeItemsFromAllDrives", False)
        drive = call.params.get("driveId")
        size = min(call.params.get("pageSize", 100), self.page or 1000)
        number, changes, latest = int(token), [], {}
        for at, (id_, _seen) in enumerate(self.log, 1):
            latest[id_] = at
        while number <= len(self.log) and len(changes) < size:
            id_ = self.log[number - 1][0]
            number += 1
            if latest[id_] != number - 1:
                continue
            change = {"kind": "drive#change", "changeType": "file", "fileId": id_,
                      "time": "2026-01-01T00:00:00.000Z"}
            file = self.files.get(id_)
            if file is not None and file.get("driveId") and not every:
                continue
            if drive and (file is None or file.get("driveId") != drive):
                if file is not None:
                    continue
            if file is not None and self.visible(call, file):
                changes.append({**change, "removed": False, "file": self.shown(call, file)})
            elif any(call.user in seen for known, seen in self.log if known == id_):
                changes.append({**change, "removed": True})
        answer = {"kind": "drive#changeList", "changes": changes}
        if number <= len(self.log):
            return {**answer, "nextPageToken": str(number)}
        return {**answer, "newStartPageToken": str(len(self.log) + 1)}


def ids(text):
    return [id_ for id_ in (text or "").split(",") if id_]


def permission_id(name):
    return str(int(hashlib.sha256(name.encode()).hexdigest()[:12], 16))


def permission(one):
    name = one.get("emailAddress") or one.get("domain")
    return {"kind": "drive#permission", **one,
            "id": permission_id(name) if name else "anyoneWithLink"}


def sorting(key):
    name, _, down = key.strip().partition(" ")
    if down not in ("", "desc") or name not in ("folder", "name", "name_natural", "modifiedTime"):
        raise invalid(f"Sorting by {key} is not supported")
    keys = {"folder": lambda file: file["mimeType"] != FOLDER,
            "modifiedTime": lambda file: file["modifiedTime"]}
    return {"key": keys.get(name, lambda file: file["name"].lower()), "reverse": down == "desc"}


# The language of q --------------------------------------------------------------------------------

WORD = re.compile(r"\s*(?:('(?:[^'\\]|\\['\\])*')|([A-Za-z]+)|(<=|>=|!=|[=<>(){}]))")


class Query:
    def __init__(self, text):
        self.words, at = [], 0
        while text[at:].strip():
            found = WORD.match(text, at)
            if not found:
                raise invalid()
            self.words.append(found[1] or found[2] or found[3])
            at = found.end()

    def peek(self):
        return self.words[0] if self.words else None

    def next(self, *allowed):
        word = self.words.pop(0) if self.words else None
        if word is None or allowed and word not in allowed:
            raise invalid()
        return word

    def value(self):
        word = self.next()
        if not word.startswith("'"):
            raise invalid()
        return re.sub(r"\\(.)", r"\1", word[1:-1])

    def parse(self):
        test = self.either()
        if self.words:
            raise invalid()
        return test

    def either(self):
        test = self.both()
        while self.peek() == "or":
            self.next()
            test = (lambda one, other: lambda *at: one(*at) or other(*at))(test, self.both())
        return test

    def both(self):
        test = self.one()
        while self.peek() == "and":
            self.next()
            test = (lambda one, other: lambda *at: one(*at) and other(*at))(test, self.one())
        return test

    def one(self):
        word = self.peek()
        if word == "(":
            self.next()
            test = self.either()
            self.next(")")
            return test
        if word == "not":
            self.next()
            test = self.one()
            return lambda *at: not test(*at)
        if word is not None and word.startswith("'"):
            return self.member()
        return self.term(self.next())

    def member(self):
        value = self.value()
        self.next("in")
        field = self.next("parents", "owners")

        def test(file, _drive, call):
            if field == "parents":
                return ("root-" + call.user if value == "root" else value) in file["parents"]
            return (call.user if value == "me" else value) == file["owner"]
        return test

    def term(self, field):
        if field == "sharedWithMe":
            return lambda file, drive, call: file["owner"] != call.user and any(
                one.get("emailAddress") == call.user for one in file["permissions"])
        if field == "appProperties":
            self.next("has")
            self.next("{")
            pair = []
            for name, end in (("key", "and"), ("value", "}")):
                self.next(name)
                self.next("=")
                pair.append(self.value())
                self.next(end)
            return lambda file, *_: file.get("appProperties", {}).get(pair[0]) == pair[1]
        if field == "trashed":
            self.next("=")
            wanted = self.next("true", "false") == "true"
            return lambda file, drive, _call: drive.trashed(file) == wanted
        if field in ("name", "mimeType"):
            operator, value = self.next("=", "!=", "contains"), self.value()
            return lambda file, *_: compared(operator, file[field], value, field)
        if field == "modifiedTime":
            operator, value = self.next("<", "<=", "=", ">", ">="), self.value()
            if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value):
                raise invalid()
            return lambda file, *_: {"<": file[field][:19] < value, "<=": file[field][:19] <= value,
                                     "=": file[field][:19] == value, ">": file[field][:19] > value,
                                     ">=": file[field][:19] >= value}[operator]
        if field == "fullText":
            self.next("contains")
            value = self.value()
            return lambda file, *_: full_text(file, value)
        raise invalid()


def compared(operator, text, value, field):
    if operator != "contains":
        return (text == value) == (operator == "=")
    if field == "mimeType":
        return text.startswith(value)
    return any(word.lower().startswith(value.lower()) for word in [text] + text.split())


def full_text(file, query):
    text = file["name"] + "\n" + file.get("data", b"").decode(errors="replace")
    text += "\n".join(str(cell) for rows in file.get("sheets", {}).values() for row in rows
                      for cell in row)
    words = re.findall(r"\w+", text.lower())
    for phrase, word in re.findall(r'"([^"]*)"|(\w+)', query.lower()):
        wanted = re.findall(r"\w+", phrase or word)
        size = len(wanted)
        if not any(words[at:at + size] == wanted for at in range(len(words) - size + 1)):
            return False
    return True


# Exports ------------------------------------------------------------------------------------------


def exported(file, type_):
    if type_ == XLSX:
        return workbook(file.get("sheets", {}))
    if type_ == "text/csv":
        out = io.StringIO()
        csv.writer(out).writerows(next(iter(file.get("sheets", {"": []}).values())))
        return out.getvalue().encode()
    if type_ == "application/pdf":
        return pdf(file.get("data", b"").decode(errors="replace"))
    if type_ == "text/plain":
        return b"\xef\xbb\xbf" + re.sub(rb"(?m)^#+ ", b"", file.get("data", b""))
    return file.get("data", b"")


def pdf(text):
    """A file of one page with the text."""
    shown = "".join("(" + re.sub(r"([()\\])", r"\\\1", line) + ") Tj T*\n"
                    for line in text.split("\n")).encode("latin-1", "replace")
    stream = b"BT /F1 12 Tf 14 TL 72 720 Td\n" + shown + b"ET"
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
               b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
               b"/Resources<</Font<</F1 5 0 R>>>>>>",
               b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
               b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, xref)


def workbook(sheets):
    """An .xlsx file, the smallest that readers accept."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    names = list(sheets)
    numbers = range(1, len(names) + 1)
    parts = {"[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default '
             'Extension="rels" ContentType="application/vnd.openxmlformats-package.'
             'relationships+xml"/><Override PartName="/xl/workbook.xml" '
             f'ContentType="{kind}sheet.main+xml"/>' + "".join(
                 f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
                 f'ContentType="{kind}worksheet+xml"/>' for n in numbers) + "</Types>",
             "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship '
             f'Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
             "</Relationships>",
             "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>' + "".join(
                 f'<sheet name="{escape(name, {chr(34): "&quot;"})}" sheetId="{n}" '
                 f'r:id="rId{n}"/>' for n, name in zip(numbers, names)) + "</sheets></workbook>",
             "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">' +
             "".join(f'<Relationship Id="rId{n}" Type="{office}/worksheet" '
                     f'Target="worksheets/sheet{n}.xml"/>' for n in numbers) + "</Relationships>"}
    for n, name in zip(numbers, names):
        rows = "".join("<row r=\"%d\">%s</row>" % (at, "".join(
            cell(f"{chr(65 + column)}{at}", value) for column, value in enumerate(row)))
            for at, row in enumerate(sheets[name], 1))
        parts[f"xl/worksheets/sheet{n}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>')
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return out.getvalue()


def cell(place, value):
    if isinstance(value, (int, float)):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'
