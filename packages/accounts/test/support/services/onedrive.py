"""OneDrive, in memory: each person has a drive. The seed:

    files  [{"id", "name", "owner" (default: the first person), "folder" (an id, default: the root),
           "type" (None for a folder), "text" or "data" in base64, "permissions": [permission]}]
    expired [token]: tokens of changes that are too old
"""

import base64
import datetime
import re

from graph import CONTENT, UPLOAD, page
from service import Answer, Broken, Refused, need

OFFICE = re.compile(r"\.(docx?|od[pst]|ppsx?|pptx?|rtf|xls[mx]?)$", re.I)
# Parts but the last are multiples of these bytes.
RANGE = 320 * 1024
# The folder that has all others.
TOP = "root"
NAME = re.compile(r'[^"*:<>?/\\|]+')


def iso(seconds):
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)
    return time.isoformat().replace("+00:00", "Z")


def missing():
    return Refused(404, "itemNotFound", "The resource could not be found.")


def person(address, name=None):
    return {"displayName": name or address, "loginName": f"i:0#.f|membership|{address}"}


class OneDrive:
    def __init__(self, world):
        self.world, self.files, self.log, self.expired = world, {}, [], set()
        self.sessions = {}
        for number, user in enumerate(world.users):
            id_ = f"ROOT{number}"
            self.files[id_] = {"id": id_, "name": TOP, "owner": user, "folder": None,
                               "type": None, "data": b"", "version": 1, "changed": world.now(),
                               "permissions": []}
        self.add(world.seed["onedrive"])

    def add(self, seed):
        unknown = set(seed) - {"files", "expired"}
        if unknown:
            raise Broken(f"onedrive's seed has no fields {sorted(unknown)}")
        self.expired.update(seed.get("expired", []))
        for one in seed.get("files", []):
            owner = one.get("owner", next(iter(self.world.users)))
            known = self.files.get(one.get("id"))
            if known:
                known.update(name=one.get("name", known["name"]))
                if "text" in one:
                    known.update(data=one["text"].encode())
                self.touch(known)
                continue
            file = self.make(owner, one.get("folder") or self.root(owner), one["name"],
                             one.get("type", "text/plain"), self.bytes(one),
                             one.get("id"))
            file["permissions"] += [{"id": f"P{self.world.count('permission')}", **permission}
                                    for permission in one.get("permissions", [])]

    @staticmethod
    def bytes(one):
        return base64.b64decode(one["data"]) if "data" in one else one.get("text", "").encode()

    def root(self, user):
        return next(id_ for id_, one in self.files.items()
                    if one["folder"] is None and one["owner"] == user)

    def touch(self, file):
        file["version"] += 1
        file["changed"] = self.world.now()
        self.log.append(file["id"])

    def make(self, owner, folder, name, type_, data=b"", id_=None):
        id_ = id_ or f"01DRIVE{self.world.count('item')}"
        self.files[id_] = file = {
            "id": id_, "name": name, "owner": owner, "folder": folder, "type": type_, "data": data,
            "version": 0, "permissions": [{"id": f"P{self.world.count('permission')}",
                                           "roles": ["owner"],
                                           "grantedToV2": {"siteUser": person(owner)}}]}
        self.touch(file)
        return file

    def resource(self, file):
        shared = [one for one in file["permissions"] if one["roles"] != ["owner"]]
        found = {"id": file["id"], "name": file["name"], "size": len(file["data"]),
                 "lastModifiedDateTime": iso(file["changed"]),
                 "cTag": f'"c:{{{file["id"]}}},{file["version"]}"',
                 "eTag": f'"{{{file["id"]}}},{file["version"]}"',
                 "webUrl": f"https://contoso-my.example.com/{file['id']}",
                 "createdBy": {"user": {"displayName": self.world.users[file["owner"]].get(
                     "name", file["owner"])}},
                 "parentReference": {"driveId": "b!drive"}}
        if file["folder"]:
            found["parentReference"]["id"] = file["folder"]
        if file["type"] is None:
            inside = [one for one in self.files.values() if one["folder"] == file["id"]]
            found["folder"] = {"childCount": len(inside)}
        else:
            found["file"] = {"mimeType": file["type"]}
        if shared:
            anyone = any(one.get("link", {}).get("scope") == "anonymous" for one in shared)
            found["shared"] = {"scope": "anonymous" if anyone else "users"}
        return found

    def file(self, call, number=0):
        id_ = call.ids[number]
        id_ = self.root(call.user) if id_ == TOP else id_
        file = self.files.get(id_)
        if file is None or file["owner"] != call.user or file.get("deleted"):
            raise missing()
        return file

    def here(self, call, folder=None):
        return [one for one in self.files.values()
                if one["owner"] == call.user and not one.get("deleted") and one["folder"]
                and folder in (None, one["folder"])]

    # Reading

    def get_drive_items_id(self, call):
        return self.resource(self.file(call))

    def get_drive_items_id_children(self, call):
        found = self.here(call, self.file(call)["id"])
        return page(call, [self.resource(one) for one in found], default=200)

    def get_drive_search_q_id(self, call):
        text = call.ids[0].replace("''", "'").lower()
        words = [phrase or word for phrase, word in re.findall(r'"([^"]*)"|(\S+)', text)]
        found = [one for one in self.here(call) if all(
            word in one["name"].lower() or word in one["data"].decode("utf-8", "replace").lower()
            for word in words)]
        return page(call, [self.resource(one) for one in found], default=200)

    def delta(self, call, found):
        answer = page(call, found, default=200)
        if "@odata.nextLink" not in answer:
            path = f"{call.base}/v1.0/me/drive/items/{TOP}/delta(token='T{len(self.log)}')"
            answer["@odata.deltaLink"] = path
        return answer

    def get_drive_items_id_delta(self, call):
        root = self.file(call)
        return self.delta(call, [self.resource(one) for one in [root, *self.here(call)]])

    def get_drive_items_id_delta_token_id(self, call):
        token = call.ids[1]
        if token == "latest":
            return self.delta(call, [])
        number = re.fullmatch(r"T(\d+)", token)
        if token in self.expired or not number:
            raise Refused(410, "resyncRequired", "Resync required.")
        ids = list(dict.fromkeys(self.log[int(number[1]):]))
        found = [{"id": id_, "deleted": {"state": "deleted"}} if self.files[id_].get("deleted")
                 else self.resource(self.files[id_])
                 for id_ in ids if self.files[id_]["owner"] == call.user]
        return self.delta(call, found)

    def get_drive_items_id_content(self, call):
        """The bytes are elsewhere, where no token is needed."""
        file = self.file(call)
        if file["type"] is None:
            raise Refused(400, "notSupported", "A folder has no content.")
        format_ = call.query.get("$format")
        if format_ not in (None, "pdf") or (format_ and not OFFICE.search(file["name"])):
            raise Refused(406, "notSupported", "The format is not supported.")
        key = base64.urlsafe_b64encode(f"{file['id']} {format_ or ''}".encode()).decode()
        return Answer(302, [("location", self.elsewhere(call, CONTENT + key))], b"")

    def download(self, key):
        id_, format_ = base64.urlsafe_b64decode(key).decode().split(" ")
        file = self.files[id_]
        if format_:
            return Answer(200, [("content-type", "application/pdf")], b"%PDF-1.7 " + file["data"])
        return Answer(200, [("content-type", file["type"])], file["data"])

    # Writing

    def check_name(self, call, folder, name, but=None):
        if not NAME.fullmatch(name) or name.strip(". ") == "":
            raise Refused(400, "invalidRequest", "The name in the provided oneDriveItem is not "
                          "valid.")
        same = [one for one in self.here(call, folder)
                if one["name"].lower() == name.lower() and one["id"] != but]
        if same:
            raise Refused(409, "nameAlreadyExists", "The specified item name already exists.")

    def post_drive_items_id_children(self, call):
        folder, body = self.file(call), call.body
        if "folder" not in body or body.get("@microsoft.graph.conflictBehavior") != "fail":
            raise Broken("only new folders that replace nothing are played")
        self.check_name(call, folder["id"], body["name"])
        return 201, self.resource(self.make(call.user, folder["id"], body["name"], None))

    def put_drive_items_id_id_content(self, call):
        folder = self.file(call)
        if call.query.get("@microsoft.graph.conflictBehavior") != "fail":
            raise Broken("only new files that replace nothing are played")
        self.check_name(call, folder["id"], call.ids[1])
        type_ = call.headers["content-type"]
        made = self.make(call.user, folder["id"], call.ids[1], type_, call.body)
        return 201, self.resource(made)

    def put_drive_items_id_content(self, call):
        file = self.file(call)
        version = self.resource(file)["eTag"]
        if call.headers.get("if-match", version) != version:
            raise Refused(412, "resourceModified", "ETag does not match current item's value")
        file["data"] = call.body
        self.touch(file)
        return self.resource(file)

    # Uploads in parts

    def session(self, call, file, folder, name):
        """What is asked for is checked at the beginning, and again at the end."""
        conflict = call.body.get("item", {}).get("@microsoft.graph.conflictBehavior")
        need(conflict == ("replace" if file else "fail"), f"a session with {conflict!r}")
        key = f"S{self.world.count('session')}"
        self.sessions[key] = {"file": file, "folder": folder, "name": name, "data": b"",
                              "size": None, "call": call, "etag": file and self.etag(file)}
        url = self.elsewhere(call, UPLOAD + key)
        return {**self.expected(self.sessions[key]), "uploadUrl": url}

    def etag(self, file):
        return self.resource(file)["eTag"]

    @staticmethod
    def elsewhere(call, path):
        """An address on another host than that of the interface."""
        return call.base.replace("127.0.0.1", "localhost") + path

    @staticmethod
    def expected(session):
        return {"expirationDateTime": "2099-01-01T00:00:00Z",
                "nextExpectedRanges": [f"{len(session['data'])}-"]}

    def post_drive_items_id_id_createUploadSession(self, call):
        folder = self.file(call)
        self.check_name(call, folder["id"], call.ids[1])
        return self.session(call, None, folder["id"], call.ids[1])

    def post_drive_items_id_createUploadSession(self, call):
        file = self.file(call)
        if call.headers.get("if-match", self.etag(file)) != self.etag(file):
            raise Refused(412, "resourceModified", "ETag does not match current item's value")
        return self.session(call, file, None, None)

    def upload(self, request, key):
        """A part, by https://learn.microsoft.com/graph/api/driveitem-createuploadsession."""
        session = self.sessions.get(key)
        if session is None:
            raise missing()
        if request.method == "GET":
            return 200, self.expected(session)
        if request.method == "DELETE":
            del self.sessions[key]
            return 204, None
        need(request.method == "PUT", f"{request.method} of an upload")
        found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", request.headers.get("content-range", ""))
        need(found, "a part without its range")
        first, last, size = map(int, found.groups())
        need(last - first + 1 == len(request.body), "a range of another length than its part")
        need(session["size"] in (None, size), "a part of another size than those before")
        need(last + 1 == size or len(request.body) % RANGE == 0, "no multiple of 320 KiB")
        need(len(request.body) < 60 * 1024 * 1024, "a part of 60 MiB")
        if first != len(session["data"]):
            raise Refused(416, "invalidRange", "The uploaded fragment overlaps with data that has "
                          "already been received.")
        session["size"] = size
        # A connection that is cut has brought some of a part.
        kept = len(request.body)
        if request.pending and "kept" in request.pending:
            kept = request.pending["kept"]
        session["data"] += request.body[:kept]
        if len(session["data"]) < size:
            return 202, self.expected(session)
        del self.sessions[key]
        call, file = session["call"], session["file"]
        if file is None:
            self.check_name(call, session["folder"], session["name"])
            file = self.make(call.user, session["folder"], session["name"], "text/plain",
                             session["data"])
            return 201, self.resource(file)
        if self.etag(file) != session["etag"]:
            raise Refused(412, "resourceModified", "ETag does not match current item's value")
        file["data"] = session["data"]
        self.touch(file)
        return 200, self.resource(file)

    def patch_drive_items_id(self, call):
        file, body = self.file(call), call.body
        folder = body.get("parentReference", {}).get("id", file["folder"])
        folder = self.root(call.user) if folder == TOP else folder
        if folder not in self.files or self.files[folder]["type"] is not None:
            raise missing()
        name = body.get("name", file["name"])
        self.check_name(call, folder, name, file["id"])
        file.update(name=name, folder=folder)
        self.touch(file)
        return self.resource(file)

    def delete_drive_items_id(self, call):
        file = self.file(call)
        file["deleted"] = True
        self.touch(file)

    # Access

    def get_drive_items_id_permissions(self, call):
        return {"value": self.file(call)["permissions"]}

    def give(self, file, fields):
        permission = {"id": f"P{self.world.count('permission')}", **fields}
        file["permissions"].append(permission)
        return permission

    def post_drive_items_id_invite(self, call):
        file, body = self.file(call), call.body
        given = []
        for one in body["recipients"]:
            address = one["email"]
            same = [known for known in file["permissions"]
                    if known.get("grantedToV2") == {"siteUser": person(address)}]
            for known in same:
                known["roles"] = body["roles"]
            given += same or [self.give(file, {"roles": body["roles"],
                                               "grantedToV2": {"siteUser": person(address)}})]
        return {"value": given}

    def post_drive_items_id_createLink(self, call):
        file, body = self.file(call), call.body
        roles = {"view": ["read"], "edit": ["write"]}[body["type"]]
        same = [one for one in file["permissions"]
                if one.get("link", {}).get("scope") == body["scope"] and one["roles"] == roles]
        if same:
            return same[0]
        return 201, self.give(file, {"roles": roles, "link": {
            "type": body["type"], "scope": body["scope"], "webUrl": "https://1drv.example.com/x"}})

    def delete_drive_items_id_permissions_id(self, call):
        file = self.file(call)
        known = [one for one in file["permissions"] if one["id"] == call.ids[1]]
        if not known:
            raise missing()
        file["permissions"].remove(known[0])
