"""A server of the official SDK with the SDK's own authorization server, whose users always agree.

Prints its URL, and ends with its input. The tool `write` needs the scope `docs:write`. `/log` says
what was asked for, and `/forget` makes all access tokens unknown.
"""

import json
import os
import secrets
import socket
import sys
import threading
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken
from starlette.responses import JSONResponse

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
HOME = f"http://127.0.0.1:{listener.getsockname()[1]}"
LOG = []


class Provider:
    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client
        LOG.append({"register": client.model_dump(mode="json", exclude_none=True)})

    async def authorize(self, client, asked):
        LOG.append({"authorize": {"scopes": asked.scopes, "resource": asked.resource}})
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            client_id=client.client_id,
            scopes=asked.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=asked.code_challenge,
            redirect_uri=asked.redirect_uri,
            redirect_uri_provided_explicitly=asked.redirect_uri_provided_explicitly,
            resource=asked.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(
            str(asked.redirect_uri), code=code.code, state=asked.state, iss=HOME
        )

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        LOG.append({"token": "code"})
        return self.grant(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refresh[token.token]
        LOG.append({"token": "refresh"})
        return self.grant(client, scopes, token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        LOG.append({"revoke": type(token).__name__})
        self.access.clear()
        self.refresh.clear()

    def grant(self, client, scopes, resource):
        known = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        access = AccessToken(token=secrets.token_urlsafe(32), **known)
        refresh = RefreshToken(token=secrets.token_urlsafe(32), **known)
        self.access[access.token], self.refresh[refresh.token] = access, refresh
        return OAuthToken(
            access_token=access.token,
            token_type="Bearer",
            expires_in=3600,
            scope=" ".join(scopes),
            refresh_token=refresh.token,
        )


provider = Provider()
mcp = MCPServer(
    "official",
    auth_server_provider=provider,
    auth=AuthSettings(
        issuer_url=HOME,
        resource_server_url=HOME + "/mcp",
        required_scopes=["docs:read"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["docs:read", "docs:write"]
        ),
        revocation_options=RevocationOptions(enabled=True),
    ),
    log_level="ERROR",
)


@mcp.tool()
def search(text: str) -> str:
    """Searches the documents"""
    return f"found {text}"


@mcp.tool()
def write(text: str) -> str:
    """Writes a document"""
    return f"wrote {text}"


@mcp.custom_route("/log", methods=["GET"])
async def log(_request):
    return JSONResponse({"log": LOG})


@mcp.custom_route("/forget", methods=["GET"])
async def forget(_request):
    provider.access.clear()
    return JSONResponse({})


app = mcp.streamable_http_app()


async def scoped(scope, receive, send):
    """Refuses calls of `write` without its scope, as RFC 6750 says."""
    if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
        return await app(scope, receive, send)

    body, more = b"", True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)

    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    token = provider.access.get(headers.get("authorization", "").removeprefix("Bearer "))
    message = json.loads(body)

    if token and message.get("method") == "tools/call" and message["params"]["name"] == "write":
        if "docs:write" not in token.scopes:
            challenge = (
                'Bearer error="insufficient_scope", scope="docs:write", '
                f'resource_metadata="{HOME}/.well-known/oauth-protected-resource/mcp"'
            )
            answer = JSONResponse({}, status_code=403, headers={"WWW-Authenticate": challenge})
            return await answer(scope, receive, send)

    sent = [{"type": "http.request", "body": body, "more_body": False}]

    async def again():
        return sent.pop(0) if sent else await receive()

    return await app(scope, again, send)


def wait():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=wait, daemon=True).start()
print(HOME + "/mcp", flush=True)
server = uvicorn.Server(uvicorn.Config(scoped, log_level="error", lifespan="on"))
server.run(sockets=[listener])
