"""Microsoft's authorization server: OAuth 2 with PKCE, and OpenID Connect's id_token.

    GET  /TENANT/oauth2/v2.0/authorize    the page of consent; the world's browser answers it
    POST /TENANT/oauth2/v2.0/token

It shares clients, codes and tokens with Google's (oauth.py). A client without a secret is a public
one. Each refresh gives a new refresh token, and the old one stays valid. Scopes in answers have
their full names.
"""

import hashlib
import json
import re
import secrets

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from oauth import CODE_SECONDS, MICROSOFT_SCOPES, OAuth, OAuthError, base64url, key, redirected, same_redirect
from service import Instead, Refused, Violation, need

PATH = re.compile(r"/([A-Za-z0-9.-]+)/oauth2/v2\.0/(authorize|token)")
OPENID = {"openid", "profile", "email", "offline_access"}
RESOURCE = "https://graph.microsoft.com/"
AUTHORIZE = {"client_id", "redirect_uri", "response_type", "response_mode", "scope", "state",
             "code_challenge", "code_challenge_method", "prompt", "login_hint", "domain_hint",
             "nonce"}
TOKEN = {"authorization_code": {"client_id", "client_secret", "code", "code_verifier",
                                "grant_type", "redirect_uri", "scope"},
         "refresh_token": {"client_id", "client_secret", "grant_type", "refresh_token", "scope"}}


class Entra:
    def __init__(self, world):
        self.world, self.oauth = world, world.oauth

    def handle(self, request):
        tenant, name = PATH.fullmatch(request.path).groups()
        request.id = f"microsoft.{name}"
        request.entry.update(method=request.id, tenant=tenant)
        http = {"authorize": "GET", "token": "POST"}[name]
        try:
            need(request.method == http, f"{request.method} {request.path}, not {http}")
            with self.world.lock:
                return OAuth.guarded(request, getattr(self, name))
        except Violation as reason:
            request.entry["violation"] = str(reason)
            return OAuth.error("invalid_request", str(reason), reason.status)
        except OAuthError as reason:
            if reason.violation:
                request.entry["violation"] = str(reason)
            return OAuth.error(reason.error, str(reason), reason.status)
        except Refused as reason:
            return OAuth.error(reason.reason, reason.message, reason.status, reason.headers)
        except Instead as instead:
            return self.oauth.faulty(instead.fault)

    def authorize(self, request):
        fields = dict(request.query)
        need(len(fields) == len(request.query), "a parameter is given twice")
        client = self.oauth.clients.get(fields.get("client_id"))
        need(client, f"no client {fields.get('client_id')!r}")
        redirect = fields.get("redirect_uri", "")
        need(any(same_redirect(known, redirect) for known in client["redirects"]),
             f"redirect_uri {redirect!r} is not registered")
        request.entry["params"] = {name: fields[name] for name in fields if name != "state"}
        unknown = sorted(set(fields) - AUTHORIZE)
        need(not unknown, f"unknown parameters {unknown}")
        need(fields.get("response_type") == "code", "response_type is not code")
        need(fields.get("response_mode") == "query", "response_mode is not query")
        need(fields.get("code_challenge_method") == "S256", "code_challenge_method is not S256")
        need(re.fullmatch(r"[A-Za-z0-9_-]{43}", fields.get("code_challenge", "")), "code_challenge")
        need(len(fields.get("state", "")) >= 16, "state is missing or short")
        need(fields.get("prompt") in (None, "login", "none", "consent", "select_account"), "prompt")
        scopes = self.scopes(fields)
        request.fault()
        answer = self.oauth.browser.get("answer", "allow")
        user = self.oauth.browser.get("user") or fields.get("login_hint")
        user = user if user in self.world.users else next(iter(self.world.users))
        if answer == "deny":
            return redirected(redirect, {"error": "access_denied"}, fields["state"])
        if isinstance(answer, list):
            scopes = [scope for scope in scopes if scope in answer or scope in OPENID]
        code = "M." + secrets.token_urlsafe(32)
        self.oauth.codes[code] = {
            "client": client["id"], "redirect": redirect, "user": user, "scopes": scopes,
            "challenge": fields["code_challenge"], "expires": self.world.now() + CODE_SECONDS,
            "grant": None}
        return redirected(redirect, {"code": code}, fields["state"])

    @staticmethod
    def scopes(fields):
        scopes = [scope.removeprefix(RESOURCE) for scope in fields.get("scope", "").split(" ")]
        unknown = [scope for scope in scopes if scope not in MICROSOFT_SCOPES | OPENID]
        if unknown or len(scopes) != len(set(scopes)):
            raise OAuthError("invalid_scope", f"unknown or repeated scopes {unknown or scopes}",
                             violation=True)
        return scopes

    def client(self, fields):
        client = self.oauth.clients.get(fields.get("client_id"))
        if client is None or (client.get("secret") or None) != fields.get("client_secret"):
            raise OAuthError("invalid_client", "AADSTS7000215: Invalid client secret provided.",
                             401)
        return client

    def token(self, request):
        fields = self.oauth.form(request)
        type_ = fields.get("grant_type")
        request.entry["params"] = {"grant_type": type_}
        need(type_ in TOKEN, f"grant_type {type_!r}")
        unknown = sorted(set(fields) - TOKEN[type_])
        need(not unknown, f"{type_} has no parameters {unknown}")
        client = self.client(fields)
        if type_ == "authorization_code":
            grant, scopes = self.by_code(client, fields)
        else:
            grant, scopes = self.by_refresh(client, fields)
        request.fault()
        if type_ == "authorization_code":
            self.oauth.codes[fields["code"]]["grant"] = grant
        access = self.oauth.issue(grant.user, scopes, grant=grant)
        answer = {"token_type": "Bearer", "expires_in": self.oauth.lasts(), "access_token": access,
                  "scope": " ".join(self.shown(scope) for scope in sorted(scopes - {
                      "offline_access"}))}
        if "offline_access" in scopes:
            # The former one stays valid.
            grant.refresh = "M.R3." + secrets.token_urlsafe(32)
            self.oauth.refreshes[grant.refresh] = grant
            answer["refresh_token"] = grant.refresh
        if "openid" in scopes:
            answer["id_token"] = self.id_token(client["id"], grant.user, scopes)
        return self.oauth.tokens_answer(request, grant.user, answer)

    @staticmethod
    def shown(scope):
        return RESOURCE + scope if scope in MICROSOFT_SCOPES else scope

    def by_code(self, client, fields):
        for name in ("code", "redirect_uri", "code_verifier"):
            need(fields.get(name), f"{name} is missing")
        code = self.oauth.codes.get(fields["code"])
        if code is None or code["expires"] <= self.world.now() or code["grant"]:
            raise OAuthError("invalid_grant", "AADSTS70008: The code has expired or was redeemed.")
        need(code["client"] == client["id"], "the code is another client's")
        need(code["redirect"] == fields["redirect_uri"], "redirect_uri is not that of the code")
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        if base64url(digest) != code["challenge"]:
            raise OAuthError("invalid_grant", "AADSTS501481: The code_verifier does not match.",
                             violation=True)
        grant = self.oauth.consent(client["id"], code["user"], code["scopes"])
        return grant, set(code["scopes"])

    def by_refresh(self, client, fields):
        need(fields.get("refresh_token"), "refresh_token is missing")
        grant = self.oauth.refreshes.get(fields["refresh_token"])
        if grant is None or grant.revoked or grant.client != client["id"]:
            raise OAuthError("invalid_grant", "AADSTS700082: The refresh token has expired due to "
                             "inactivity.")
        return grant, set(grant.scopes)

    def id_token(self, client, user, scopes):
        now = int(self.world.now())
        claims = {"iss": "https://login.microsoftonline.com/tid/v2.0", "aud": client, "tid": "tid",
                  "sub": hashlib.sha256(user.encode()).hexdigest()[:20], "ver": "2.0",
                  "iat": now, "exp": now + 3600}
        person = self.world.users[user]
        if "profile" in scopes:
            claims.update(preferred_username=person.get("upn", user), name=person.get("name", user))
        if "email" in scopes and person.get("mailbox", True):
            claims["email"] = user
        head = {"alg": "RS256", "kid": "key-1", "typ": "JWT"}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = key().sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{base64url(signature)}"
