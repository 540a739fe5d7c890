"""Google's authorization server: OAuth 2 (RFC 6749), PKCE (RFC 7636), native applications
(RFC 8252), service accounts (RFC 7523), revocation (RFC 7009) and OpenID Connect's id_token.

    GET  /o/oauth2/v2/auth    the page of consent; the scripted browser of the world answers it
    POST /token
    POST /revoke
    GET  /v1/userinfo, /oauth2/v3/userinfo
    GET  /oauth2/v3/certs
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from urllib.parse import quote, urlencode, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from discovery import APIS, bearer
from service import Answer, Instead, Refused, Violation, as_json, need, query_pairs, replaces

OPENID = {"openid", "email", "profile", "https://www.googleapis.com/auth/userinfo.email",
          "https://www.googleapis.com/auth/userinfo.profile"}
GOOGLE_SCOPES = {scope for api in APIS.values() for scope in api.doc["auth"]["oauth2"]["scopes"]}
# Those of Microsoft Graph (entra.py).
MICROSOFT_SCOPES = {"Mail.Read", "Mail.ReadWrite", "Mail.Send", "Calendars.Read",
                    "Calendars.ReadWrite", "Files.Read", "Files.ReadWrite"}
KNOWN = GOOGLE_SCOPES | OPENID | MICROSOFT_SCOPES

AUTH_PARAMETERS = {
    "client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge",
    "code_challenge_method", "access_type", "prompt", "include_granted_scopes", "login_hint",
    "nonce", "hd", "enable_granular_consent",
}
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_PARAMETERS = {
    "authorization_code": {"client_id", "client_secret", "code", "code_verifier", "grant_type",
                           "redirect_uri"},
    "refresh_token": {"client_id", "client_secret", "grant_type", "refresh_token", "scope"},
    JWT_BEARER: {"assertion", "grant_type"},
}
CODE_SECONDS = 600


class Token:
    def __init__(self, number, user, scopes, expires, grant=None, judge=False):
        self.number, self.user, self.scopes, self.expires = number, user, set(scopes), expires
        self.grant, self.judge = grant, judge


class Grant:
    """The consent of a person for a client, with its refresh token."""

    def __init__(self, client, user, scopes):
        self.client, self.user, self.scopes = client, user, set(scopes)
        self.revoked, self.refresh, self.old = False, None, set()


class OAuthError(Exception):
    def __init__(self, error, description, status=400, violation=False, headers=()):
        super().__init__(description)
        self.error, self.status, self.violation, self.headers = error, status, violation, headers


_keys = []


def key():
    """One key signs for all worlds; making one takes a tenth of a second."""
    if not _keys:
        _keys.append(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    return _keys[0]


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    need(re.fullmatch(r"[A-Za-z0-9_-]*", text), "base64url without padding is needed")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class OAuth:
    PATHS = {"/o/oauth2/v2/auth": ("GET", "authorize"), "/token": ("POST", "token"),
             "/revoke": ("POST", "revoke"), "/v1/userinfo": ("GET", "userinfo"),
             "/oauth2/v3/userinfo": ("GET", "userinfo"), "/oauth2/v3/certs": ("GET", "certs")}

    def __init__(self, world):
        self.world = world
        seed = world.seed
        self.clients = {client["id"]: client for client in seed.get("clients", [
            {"id": "client", "secret": "client-secret", "redirects": ["http://127.0.0.1"]}])}
        self.browser = seed.get("browser", {})
        self.tokens, self.refreshes, self.codes, self.grants = {}, {}, {}, {}
        self.hubspot = seed.get("hubspot_tokens", {})
        self.account = {
            "type": "service_account", "project_id": "tests", "private_key_id": "key-1",
            "private_key": key().private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption()).decode(),
            "client_email": f"robot-{world.number}@tests.iam.gserviceaccount.com",
            "client_id": "1000000000000000000", "token_uri": f"{world.url}/token",
        }

    # Tokens

    def lasts(self):
        return self.world.seed.get("expires_in", 3600)

    def issue(self, user, scopes, seconds=None, grant=None, judge=False):
        text = "ya29." + secrets.token_urlsafe(32)
        expires = self.world.now() + (self.lasts() if seconds is None else seconds)
        self.tokens[text] = Token(self.world.count("token"), user, scopes, expires, grant, judge)
        return text

    def consent(self, client, user, scopes):
        grant = self.grants.get((client, user))
        if grant is None or grant.revoked:
            grant = self.grants[client, user] = Grant(client, user, [])
        grant.scopes |= set(scopes)
        return grant

    def new_refresh(self, grant):
        if grant.refresh:
            self.refreshes.pop(grant.refresh, None)
            grant.old.add(grant.refresh)
        grant.refresh = "1//" + secrets.token_urlsafe(32)
        self.refreshes[grant.refresh] = grant
        return grant.refresh

    def access(self, text):
        """The token of a request, or None if it is unknown, expired or revoked."""
        token = self.tokens.get(text)
        if token is None or token.expires <= self.world.now():
            return None
        return None if token.grant and token.grant.revoked else token

    @staticmethod
    def shown(scopes):
        """Scopes for the log."""
        return "all" if KNOWN <= scopes else sorted(scopes)

    def control_token(self, fields):
        scopes = fields.get("scopes", "all")
        scopes = KNOWN if scopes == "all" else scopes
        client = fields.get("client", next(iter(self.clients)))
        grant = self.consent(client, fields["user"], scopes)
        refresh = grant.refresh or self.new_refresh(grant)
        access = self.issue(fields["user"], scopes, fields.get("expires_in"), grant)
        return {"access_token": access, "refresh_token": refresh}

    def hubspot_scopes(self, request):
        token = self.access(bearer(request))
        if token is not None and token.judge:
            request.entry["judge"] = True
            return "all"
        scopes = self.hubspot.get(bearer(request))
        if scopes is None:
            raise Refused(401, "INVALID_AUTHENTICATION", "Authentication credentials not found. "
                          "This API supports OAuth 2.0 authentication.")
        return scopes

    # Requests

    def handle(self, request):
        http, name = self.PATHS[request.path]
        request.id = f"oauth.{name}"
        request.entry["method"] = request.id
        try:
            need(request.method == http, f"{request.method} {request.path}, not {http}")
            with self.world.lock:
                return self.guarded(request, getattr(self, name))
        except Violation as reason:
            request.entry["violation"] = str(reason)
            return self.error("invalid_request", str(reason), reason.status)
        except OAuthError as reason:
            if reason.violation:
                request.entry["violation"] = str(reason)
            return self.error(reason.error, str(reason), reason.status, reason.headers)
        except Refused as reason:
            return self.error(reason.reason, reason.message, reason.status, reason.headers)
        except Instead as instead:
            return self.faulty(instead.fault)

    @staticmethod
    def guarded(request, work):
        answer = work(request)
        if request.pending:
            if replaces(request.pending):
                raise Instead(request.pending)
            answer.fault = request.pending
        return answer

    @staticmethod
    def error(code, description, status=400, headers=()):
        body = {"error": code, "error_description": description}
        return as_json(body, status, [("cache-control", "no-store"), *headers])

    def faulty(self, fault):
        headers = [(name, str(value)) for name, value in dict(fault.get("headers", {})).items()]
        if "retry_after" in fault:
            headers.append(("retry-after", str(fault["retry_after"])))
        if "body" in fault:
            type_ = ("content-type", "text/html; charset=UTF-8")
            return Answer(fault.get("status", 200), [type_, *headers], fault["body"].encode(),
                          fault)
        answer = self.error(fault.get("reason", "temporarily_unavailable"),
                            fault.get("message", "fault"), fault.get("status", 503), headers)
        answer.fault = fault
        return answer

    # The page of consent

    def authorize(self, request):
        names = [name for name, _ in request.query]
        fields = dict(request.query)
        client = self.clients.get(fields.get("client_id"))
        # Without a client and its redirect nothing is sent anywhere (RFC 6749, 4.1.2.1).
        need(client, f"no client {fields.get('client_id')!r}")
        redirect = fields.get("redirect_uri", "")
        need(any(same_redirect(known, redirect) for known in client["redirects"]),
             f"redirect_uri {redirect!r} is not registered")
        request.entry["params"] = {name: fields[name] for name in fields if name != "state"}
        state = fields.get("state")
        try:
            self.check_authorize(names, fields)
        except Violation as reason:
            request.entry["violation"] = str(reason)
            return redirected(redirect, {"error": "invalid_request",
                                         "error_description": str(reason)}, state)
        except OAuthError as reason:
            request.entry["violation"] = str(reason)
            return redirected(redirect, {"error": reason.error,
                                         "error_description": str(reason)}, state)
        request.fault()
        answer = self.browser.get("answer", "allow")
        user = self.browser.get("user") or fields.get("login_hint")
        user = user if user in self.world.users else next(iter(self.world.users))
        if answer == "deny":
            return redirected(redirect, {"error": "access_denied"}, state)
        scopes = fields["scope"].split(" ")
        if isinstance(answer, list):
            scopes = [scope for scope in scopes if scope in answer]
        code = "4/" + secrets.token_urlsafe(32)
        self.codes[code] = {
            "client": client["id"], "redirect": redirect, "user": user, "scopes": scopes,
            "challenge": fields["code_challenge"], "expires": self.world.now() + CODE_SECONDS,
            "offline": fields.get("access_type") == "offline",
            "again": "consent" in fields.get("prompt", "").split(" "),
            "include": fields.get("include_granted_scopes") == "true",
            "nonce": fields.get("nonce"), "grant": None,
        }
        return redirected(redirect, {"code": code, "scope": " ".join(scopes)}, state)

    def check_authorize(self, names, fields):
        need(len(names) == len(fields), "a parameter is given twice (RFC 6749, 3.1)")
        unknown = sorted(set(fields) - AUTH_PARAMETERS)
        need(not unknown, f"unknown parameters {unknown}")
        if fields.get("response_type") != "code":
            raise OAuthError("unsupported_response_type",
                             f"response_type is {fields.get('response_type')!r}, not code")
        need(fields.get("code_challenge_method") == "S256",
             "code_challenge_method is not S256 (RFC 7636, 4.2)")
        need(re.fullmatch(r"[A-Za-z0-9_-]{43}", fields.get("code_challenge", "")),
             "code_challenge is no SHA-256 in base64url (RFC 7636, 4.2)")
        need(len(fields.get("state", "")) >= 16, "state is missing or shorter than 16 characters")
        need(fields.get("access_type", "online") in ("online", "offline"), "access_type")
        need(set(fields.get("prompt", "").split()) <= {"none", "consent", "select_account"},
             "prompt")
        need(fields.get("include_granted_scopes", "false") in ("true", "false"),
             "include_granted_scopes")
        scopes = fields.get("scope", "").split(" ")
        unknown = [scope for scope in scopes if scope not in GOOGLE_SCOPES | OPENID]
        if unknown or len(scopes) != len(set(scopes)):
            raise OAuthError("invalid_scope", f"unknown or repeated scopes {unknown or scopes}")

    # Tokens for codes, refresh tokens and assertions

    def form(self, request):
        type_ = request.headers.get("content-type", "").split(";")[0].strip().lower()
        need(type_ == "application/x-www-form-urlencoded", f"content type {type_!r} of a form")
        need(not request.query, "parameters of a form belong into the body (RFC 6749, 3.2)")
        try:
            pairs = query_pairs(request.body.decode("ascii"))
        except UnicodeDecodeError:
            raise Violation("the form is not encoded") from None
        fields = dict(pairs)
        need(len(fields) == len(pairs), "a parameter is given twice (RFC 6749, 3.2)")
        return fields

    def client_of(self, request, fields):
        """The client, by the form or by Basic, not both (RFC 6749, 2.3.1)."""
        name, secret = fields.get("client_id"), fields.get("client_secret")
        basic = request.headers.get("authorization")
        if basic is not None:
            need("client_secret" not in fields, "the client authenticates twice")
            found = re.fullmatch(r"Basic ([A-Za-z0-9+/]+=*)", basic)
            need(found, "Authorization is not Basic")
            pair = base64.b64decode(found[1]).decode().split(":", 1)
            need(len(pair) == 2, "Basic has no colon")
            (name, _), = query_pairs(f"{pair[0]}=")
            (secret, _), = query_pairs(f"{pair[1]}=")
        client = self.clients.get(name)
        if client is None or not hmac.compare_digest(client.get("secret") or "", secret or ""):
            headers = [("www-authenticate", 'Basic realm="tests"')] if basic else []
            raise OAuthError("invalid_client", "The OAuth client was not found.", 401,
                             headers=headers)
        return client

    def token(self, request):
        fields = self.form(request)
        grant_type = fields.get("grant_type")
        request.entry["params"] = {"grant_type": grant_type}
        allowed = TOKEN_PARAMETERS.get(grant_type)
        if allowed is None:
            raise OAuthError("unsupported_grant_type", f"Invalid grant_type: {grant_type}",
                             violation=True)
        unknown = sorted(set(fields) - allowed)
        need(not unknown, f"{grant_type} has no parameters {unknown}")
        if grant_type == JWT_BEARER:
            return self.by_assertion(request, fields)
        client = self.client_of(request, fields)
        if grant_type == "authorization_code":
            return self.by_code(request, client, fields)
        return self.by_refresh(request, client, fields)

    def by_code(self, request, client, fields):
        for name in ("code", "redirect_uri", "code_verifier"):
            need(fields.get(name), f"{name} is missing")
        need(re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", fields["code_verifier"]),
             "code_verifier is not 43 to 128 unreserved characters (RFC 7636, 4.1)")
        code = self.codes.get(fields["code"])
        if code is None or code["expires"] <= self.world.now():
            raise OAuthError("invalid_grant", "Malformed auth code.")
        if code["grant"]:
            # A code that comes twice may have been stolen (RFC 6749, 4.1.2).
            code["grant"].revoked = True
            raise OAuthError("invalid_grant", "Code was already redeemed.", violation=True)
        need(code["client"] == client["id"], "the code is another client's")
        need(code["redirect"] == fields["redirect_uri"], "redirect_uri is not that of the code")
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        if base64url(digest) != code["challenge"]:
            raise OAuthError("invalid_grant", "Invalid code verifier.", violation=True)
        request.fault()
        before = self.grants.get((client["id"], code["user"]))
        known = before and not before.revoked
        scopes = set(code["scopes"])
        if code["include"] and known:
            scopes |= before.scopes
        grant = code["grant"] = self.consent(client["id"], code["user"], scopes)
        answer = self.answer(grant, scopes)
        # Google gives a refresh token with the first consent, and again if it is asked to.
        if code["offline"] and (code["again"] or not grant.refresh):
            answer["refresh_token"] = self.new_refresh(grant)
        if "openid" in scopes:
            answer["id_token"] = self.id_token(client["id"], code["user"], scopes, code["nonce"])
        return self.tokens_answer(request, grant.user, answer)

    def by_refresh(self, request, client, fields):
        need(fields.get("refresh_token"), "refresh_token is missing")
        text = fields["refresh_token"]
        grant = self.refreshes.get(text)
        if grant is None:
            stolen = next((one for one in self.grants.values() if text in one.old), None)
            if stolen and self.world.seed.get("rotate"):
                stolen.revoked = True
            raise OAuthError("invalid_grant", "Token has been expired or revoked.")
        if grant.revoked or grant.client != client["id"]:
            raise OAuthError("invalid_grant", "Token has been expired or revoked.")
        scopes = grant.scopes
        if "scope" in fields:
            scopes = set(fields["scope"].split(" "))
            if not scopes <= grant.scopes:
                raise OAuthError("invalid_scope", "Some requested scopes were not granted.")
        request.fault()
        answer = self.answer(grant, scopes)
        if self.world.seed.get("rotate"):
            answer["refresh_token"] = self.new_refresh(grant)
        if "openid" in scopes:
            answer["id_token"] = self.id_token(client["id"], grant.user, scopes, None)
        return self.tokens_answer(request, grant.user, answer)

    def by_assertion(self, request, fields):
        """A signed assertion of a service account (RFC 7523, 2.1 and 3)."""
        pieces = fields.get("assertion", "").split(".")
        need(len(pieces) == 3, "the assertion is no JWT")
        head, claims = (json.loads(unbase64url(piece)) for piece in pieces[:2])
        need(head.get("alg") == "RS256", f"alg {head.get('alg')!r} is not RS256")
        need(head.get("typ", "JWT") == "JWT", "typ is not JWT")
        need(head.get("kid", "key-1") == "key-1", "kid is not that of the key")
        try:
            key().public_key().verify(unbase64url(pieces[2]), ".".join(pieces[:2]).encode(),
                                      padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            raise OAuthError("invalid_grant", "Invalid JWT Signature.") from None
        now = self.world.now()
        if claims.get("iss") != self.account["client_email"]:
            raise OAuthError("invalid_grant", "Invalid issuer: Not a valid email or user ID.")
        audiences = (f"{self.world.url}/token", "https://oauth2.googleapis.com/token")
        if claims.get("aud") not in audiences:
            raise OAuthError("invalid_grant", "Invalid JWT: wrong audience.", violation=True)
        issued, expires = claims.get("iat"), claims.get("exp")
        need(isinstance(issued, int) and isinstance(expires, int), "iat and exp are whole seconds")
        if not now - 3600 <= issued <= now + 60 or not now < expires <= issued + 3600:
            raise OAuthError("invalid_grant", "Invalid JWT: Token must be a short-lived token "
                             "(60 minutes) and in a reasonable timeframe.")
        unknown = sorted(set(claims) - {"iss", "sub", "scope", "aud", "iat", "exp"})
        need(not unknown, f"unknown claims {unknown}")
        user = claims.get("sub", self.account["client_email"])
        if "sub" in claims and user not in self.world.users:
            raise OAuthError("invalid_grant", "Invalid email or User ID")
        scopes = str(claims.get("scope", "")).split(" ")
        allowed = self.world.seed.get("delegated", "all")
        if [scope for scope in scopes if scope not in KNOWN]:
            raise OAuthError("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
        if allowed != "all" and set(scopes) - set(allowed):
            raise OAuthError("unauthorized_client", "Client is unauthorized to retrieve access "
                             "tokens using this method, or client not authorized for any of the "
                             "scopes requested.", 401)
        request.fault()
        access = self.issue(user, scopes)
        return self.tokens_answer(request, user, {
            "access_token": access, "expires_in": self.lasts(), "token_type": "Bearer"})

    def answer(self, grant, scopes):
        access = self.issue(grant.user, scopes, grant=grant)
        return {"access_token": access, "expires_in": self.lasts(), "token_type": "Bearer",
                "scope": " ".join(sorted(scopes))}

    def tokens_answer(self, request, user, answer):
        request.entry.update(user=user, token=self.tokens[answer["access_token"]].number)
        return as_json(answer, 200, [("cache-control", "no-store"), ("pragma", "no-cache")])

    def id_token(self, client, user, scopes, nonce):
        now = int(self.world.now())
        claims = {"iss": "https://accounts.google.com", "aud": client, "azp": client,
                  "sub": subject(user), "iat": now, "exp": now + 3600}
        if {"email", "https://www.googleapis.com/auth/userinfo.email"} & scopes:
            claims.update(email=user, email_verified=True)
        if nonce:
            claims["nonce"] = nonce
        head = {"alg": "RS256", "kid": "key-1", "typ": "JWT"}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = key().sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{base64url(signature)}"

    # The rest

    def revoke(self, request):
        fields = self.form(request)
        need(set(fields) <= {"token", "token_type_hint"}, f"unknown parameters {sorted(fields)}")
        text = fields.get("token")
        need(text, "token is missing")
        grant = self.refreshes.get(text)
        if grant is None and text in self.tokens:
            grant = self.tokens[text].grant
        if grant is None or grant.revoked:
            raise OAuthError("invalid_token", "Token expired or revoked")
        request.fault()
        # One token revoked is the whole consent revoked.
        grant.revoked = True
        request.entry["user"] = grant.user
        return as_json({})

    def userinfo(self, request):
        need(not request.query, "userinfo has no parameters")
        token = self.access(bearer(request))
        if token is None or not OPENID & token.scopes:
            raise OAuthError("invalid_request", "Invalid Credentials", 401,
                             headers=[("www-authenticate", 'Bearer error="invalid_token"')])
        request.entry.update(user=token.user, token=token.number,
                             scopes=self.shown(token.scopes))
        request.fault()
        value = {"sub": subject(token.user)}
        if {"email", "https://www.googleapis.com/auth/userinfo.email"} & token.scopes:
            value.update(email=token.user, email_verified=True)
        if {"profile", "https://www.googleapis.com/auth/userinfo.profile"} & token.scopes:
            value["name"] = self.world.users[token.user].get("name", token.user)
        return as_json(value)

    def certs(self, _request):
        numbers = key().public_key().public_numbers()

        def number(value):
            return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))

        return as_json({"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "key-1",
                                  "n": number(numbers.n), "e": number(numbers.e)}]})


def subject(user):
    return str(int(hashlib.sha256(user.encode()).hexdigest()[:16], 16))


def same_redirect(known, given):
    """Exactly the registered address; a loopback one with any port (RFC 8252, 7.3)."""
    try:
        here, there = urlsplit(known), urlsplit(given)
        there.port
    except ValueError:
        return False
    if there.fragment or there.username:
        return False
    if here.scheme == "http" and here.hostname in ("127.0.0.1", "::1", "localhost"):
        path = here.path in ("", "/") or here.path == there.path
        return (there.scheme, there.hostname, path) == ("http", here.hostname, True)
    return known == given


def redirected(address, fields, state):
    if state is not None:
        fields = {**fields, "state": state}
    mark = "&" if "?" in address else "?"
    location = address + mark + urlencode(fields, quote_via=quote)
    return Answer(302, [("location", location), ("cache-control", "no-store")], b"")
