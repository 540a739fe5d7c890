"""Vertex AI and Bedrock: the requests that the vendors' own clients make of a request, signatures as
botocore makes them, and the stream of Bedrock."""

import base64
import json
import struct
import zlib

from anthropic._models import FinalRequestOptions
from anthropic.lib.bedrock import _client as bedrock
from anthropic.lib.vertex import _client as vertex
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer
from checks import need

MODEL = "anthropic.m-v1:0"
VERSIONS = {"vertex": "vertex-2023-10-16", "bedrock": "bedrock-2023-05-31"}
GEMINI = "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse"
CREDENTIALS = Credentials("AKIDEXAMPLE", "secret/+key", "session+token")


def request(vendor, platform, path, body):
    """Checks the address, and returns the body as the vendor's own server takes it."""
    if vendor == "gemini":
        need(path == GEMINI, f"path {path}")
        return body
    need(body.pop("anthropic_version", None) == VERSIONS[platform], "anthropic_version")
    need("model" not in body, "the model in the body")
    whole = {**body, "model": MODEL, "stream": True}
    options = FinalRequestOptions(method="post", url="/v1/messages", json_data=dict(whole))
    if platform == "vertex":
        made = vertex._prepare_options(options, project_id="p", region="l")
        made.url = "/v1" + made.url
    else:
        made = bedrock._prepare_options(options, {})
    need(path == made.url, f"path {path}, not {made.url}")
    expected = {name: value for name, value in made.json_data.items()
                if name != "anthropic_version"}
    need(body == expected, "another body than that of the vendor's client")
    return whole


def key_of(headers, path, text):
    """The key of a request; `signed` if it has botocore's signature."""
    authorization = headers.get("authorization", "")
    if authorization.startswith("Bearer "):
        return authorization.removeprefix("Bearer ")
    names = authorization.split("SignedHeaders=")[-1].split(",")[0].split(";")
    need({"host", "x-amz-date", "x-amz-security-token"} <= set(names), f"signed: {names}")
    url = f"http://{headers['host']}{path}"
    again = AWSRequest("POST", url, {name: headers[name] for name in names}, text.encode())
    again.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(CREDENTIALS, "bedrock", "us-east-1")
    canonical = signer.canonical_request(again)
    signature = signer.signature(signer.string_to_sign(again, canonical), again)
    return "signed" if authorization.endswith(f"Signature={signature}") else "wrong signature"


def message(headers, payload):
    fields = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value))
        + value.encode() for name, value in headers.items())
    head = struct.pack("!II", len(fields) + len(payload) + 16, len(fields))
    body = head + struct.pack("!I", zlib.crc32(head)) + fields + payload
    data = body + struct.pack("!I", zlib.crc32(body))
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    assert len(list(buffer)) == 1
    return data


def stream(pieces):
    """Events with `data:` lines as messages of Bedrock; others are exceptions, `NAME: TEXT`."""
    for piece in pieces:
        text = piece.decode()
        if "data: " in text:
            data = text.split("data: ", 1)[1].strip()
            payload = {"bytes": base64.b64encode(data.encode()).decode(), "p": "abcdef"}
            yield message({":event-type": "chunk", ":content-type": "application/json",
                           ":message-type": "event"}, json.dumps(payload).encode())
        else:
            name, reason = text.strip().split(": ", 1)
            yield message({":exception-type": name, ":content-type": "application/json",
                           ":message-type": "exception"},
                          json.dumps({"message": reason}).encode())
