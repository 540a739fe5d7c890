"""Reads a world back with the vendors' own clients, through the same server: judge.py knows nothing of
the modules that keep the state.

    gmail.messages    [{"id", "thread", "labels", "headers", "text", "html", "attachments"}], each
                      parsed by Python's email package from its raw form; `q` filters
    gmail.drafts      the same, with the id of the draft in "draft"
    gmail.labels      [label]
    calendar.events   [event], as stored; `calendar`, default primary; `expand=true`: instances
    drive.files       [file] with "content" (text of the bytes) or "export" (Docs as plain text,
                      Sheets as CSV), and "permissions"; `q` filters
    drive.permissions [permission] of the file `id`

    outlook.messages  [{"id", "thread", "folder", ...}], the rest as for Gmail

    outlook.events    [event], as Graph shows them
    onedrive.files    [file], likewise

    hubspot.contacts  [{"id", "properties", "associations": {kind: [[id, label or null]]}}], as
                      HubSpot's own client reads them; the other kinds likewise

It has a test of the server too:

    client.uses       Google's client uploads in both ways, downloads in parts, sends a batch and
                      reads an error: what it got
"""

import base64
import copy
import email
import email.policy
import hashlib
import io
import json
import urllib.request

import google.oauth2.credentials
import hubspot
from discovery import APIS
from googleapiclient.discovery import build_from_document
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaIoBaseDownload, MediaIoBaseUpload

EXPORTS = {"application/vnd.google-apps.document": "text/plain",
           "application/vnd.google-apps.spreadsheet": "text/csv",
           "application/vnd.google-apps.presentation": "text/plain"}


def client(name, url, token):
    # The client changes the document.
    document = copy.deepcopy(APIS[name].doc)
    document["rootUrl"] = url + "/"
    document["baseUrl"] = url + "/" + document["servicePath"]
    return build_from_document(document, credentials=google.oauth2.credentials.Credentials(token))


def judge(what, url, token, query):
    name = what.split(".")[0]
    if name == "client":
        return uses(url, token)
    if name in ("outlook", "onedrive"):
        return GRAPH[what](url + "/v1.0/me", token)
    if name == "hubspot":
        return records(url, token, what.split(".")[1])
    return JUDGES[what](client(name, url, token), query)


KINDS = ["contacts", "companies", "deals", "tickets", "notes", "tasks", "calls", "meetings"]


def records(url, token, kind):
    own = hubspot.Client.create(access_token=token)

    def at(api):
        api.api_client.configuration.host = url
        return api

    properties = [one.name for one in at(own.crm.properties.core_api).get_all(kind).results]
    part = own.crm if kind in KINDS[:4] else own.crm.objects
    basic, linked = at(getattr(part, kind).basic_api), at(own.crm.associations.v4.basic_api)
    found, after = [], None
    while True:
        page = basic.get_page(limit=100, properties=properties,
                              **({"after": after} if after else {}))
        for one in page.results:
            others = {}
            for other in KINDS:
                answer = linked.get_page(kind, one.id, other)
                links = [[link.to_object_id, type_.label] for link in answer.results
                         for type_ in link.association_types]
                if links:
                    others[other] = links
            values = {name: value for name, value in one.properties.items() if value is not None}
            found.append({"id": one.id, "properties": values, "associations": others})
        if page.paging is None:
            return found
        after = page.paging.next.after


def pages(resource, first, name):
    request = first
    method = "list"
    while request is not None:
        answer = request.execute()
        yield from answer.get(name, [])
        request = getattr(resource, f"{method}_next")(request, answer)


def graph(url, token, decode=json.loads):
    headers = {"authorization": f"Bearer {token}", "prefer": 'IdType="ImmutableId"'}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return decode(answer.read())


def graph_list(url, token):
    while url:
        answer = graph(url, token)
        yield from answer["value"]
        url = answer.get("@odata.nextLink")


def outlook(me, token):
    folders = {one["id"]: one["displayName"]
               for one in graph_list(f"{me}/mailFolders/delta()?$top=100", token)}
    return [{"id": one["id"], "thread": one["conversationId"],
             "folder": folders[one["parentFolderId"]],
             **mail(graph(f"{me}/messages/{one['id']}/$value", token, decode=bytes))}
            for one in graph_list(f"{me}/messages?$top=100", token)]


def outlook_events(me, token):
    return list(graph_list(f"{me}/events?$top=100", token))


# The folder that has all others.
TOP = "root"


def onedrive_files(me, token):
    return [one for one in graph_list(f"{me}/drive/items/{TOP}/delta()", token)
            if "id" in one["parentReference"]]


GRAPH = {"outlook.messages": outlook, "outlook.events": outlook_events,
         "onedrive.files": onedrive_files}


def gmail_raw(raw):
    return base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4))


def mail(raw):
    message = email.message_from_bytes(raw, policy=email.policy.default)
    found = {"headers": {}, "text": None, "html": None, "attachments": []}
    for name, value in message.items():
        found["headers"].setdefault(name.lower(), []).append(str(value))
    found["defects"] = [str(defect) for part in message.walk() for defect in part.defects]
    for part in message.walk():
        if part.is_multipart():
            continue
        type_ = part.get_content_type()
        if part.get_content_disposition() == "attachment" or part.get_filename():
            data = part.get_payload(decode=True) or b""
            found["attachments"].append({"name": part.get_filename(), "type": type_,
                                         "size": len(data), "data": text_of(data),
                                         "sha256": hashlib.sha256(data).hexdigest()})
        elif type_ == "text/plain" and found["text"] is None:
            found["text"] = part.get_content()
        elif type_ == "text/html" and found["html"] is None:
            found["html"] = part.get_content()
    return found


def text_of(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def messages(gmail, query):
    resource = gmail.users().messages()
    first = resource.list(userId="me", q=query.get("q"), includeSpamTrash=True, maxResults=100)
    found = []
    for one in pages(resource, first, "messages"):
        raw = resource.get(userId="me", id=one["id"], format="raw").execute()
        found.append({"id": raw["id"], "thread": raw["threadId"],
                      "labels": sorted(raw.get("labelIds", [])), **mail(gmail_raw(raw["raw"]))})
    return found


def drafts(gmail, query):
    resource = gmail.users().drafts()
    first = resource.list(userId="me", q=query.get("q"), maxResults=100)
    found = []
    for one in pages(resource, first, "drafts"):
        draft = resource.get(userId="me", id=one["id"], format="raw").execute()
        raw = draft["message"]
        found.append({"draft": draft["id"], "id": raw["id"], "thread": raw["threadId"],
                      "labels": sorted(raw.get("labelIds", [])), **mail(gmail_raw(raw["raw"]))})
    return found


def labels(gmail, _query):
    return gmail.users().labels().list(userId="me").execute().get("labels", [])


def events(calendar, query):
    resource = calendar.events()
    options = {"singleEvents": True} if query.get("expand") == "true" else {}
    first = resource.list(calendarId=query.get("calendar", "primary"), maxResults=250, **options)
    return list(pages(resource, first, "items"))


def files(drive, query):
    resource = drive.files()
    first = resource.list(q=query.get("q"), pageSize=100, fields="nextPageToken,files")
    found = []
    for one in pages(resource, first, "files"):
        one = resource.get(fileId=one["id"], fields="*").execute()
        type_ = one["mimeType"]
        if type_ in EXPORTS:
            data = resource.export(fileId=one["id"], mimeType=EXPORTS[type_]).execute()
            one["export"] = text_of(data)
        elif not type_.startswith("application/vnd.google-apps."):
            data = resource.get_media(fileId=one["id"]).execute()
            one["content"] = text_of(data)
            one["sha256"] = hashlib.sha256(data).hexdigest()
        found.append(one)
    return found


def permissions(drive, query):
    resource = drive.permissions()
    first = resource.list(fileId=query["id"], fields="nextPageToken,permissions")
    return list(pages(resource, first, "permissions"))


def uses(url, token):
    drive, gmail = client("drive", url, token), client("gmail", url, token)

    def upload(resumable):
        media = MediaIoBaseUpload(io.BytesIO(b"a" * 600_000), "text/plain", resumable=resumable,
                                  chunksize=256 * 1024)
        return drive.files().create(body={"name": "a"}, media_body=media, fields="size").execute()

    data = io.BytesIO()
    download = MediaIoBaseDownload(data, drive.files().get_media(fileId="f"), chunksize=4)
    done = False
    while not done:
        _, done = download.next_chunk()
    batched = {}

    def answered(id_, answer, error):
        batched[id_] = error.status_code if error else answer

    batch = gmail.new_batch_http_request(callback=answered)
    other = gmail.users().messages().get(userId="bob@example.com", id="m")
    batch.add(gmail.users().labels().list(userId="me"), request_id="labels")
    batch.add(other, request_id="message")
    batch.execute()
    error = None
    try:
        other.execute()
    except HttpError as reason:
        error = {"status": reason.status_code, "reason": reason.reason}
    return {"multipart": upload(False), "resumable": upload(True), "batch": batched,
            "download": data.getvalue().decode(), "error": error}


JUDGES = {"gmail.messages": messages, "gmail.drafts": drafts, "gmail.labels": labels,
          "calendar.events": events, "drive.files": files, "drive.permissions": permissions}
