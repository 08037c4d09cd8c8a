"""The secrets in what stands before a body: the address, and the headers."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import quote, unquote

from harness.transport.rules import REDACTED
from harness.transport.secrets import forms
from harness.transport.secrets.edits import applied
from harness.transport.secrets.finder import Finder, Scope
from harness.wire.http import Headers


def address(url: str, finder: Finder) -> str:
    """An address without secrets: what logs in, in the path, and in the query."""
    rest, mark, query = url.partition("?")
    scheme, slashes, rest = rest.partition("://") if "://" in rest else ("", "", rest)
    host, slash, path = rest.partition("/") if scheme else ("", "", rest)
    login, at, name = host.rpartition("@")
    if finder.hides(unquote(login)):
        finder.known.learn(unquote(login.partition(":")[2]))
        login = quote(REDACTED, safe="")
    plain = unquote(path)
    edits = finder.edits(plain)
    path = quote(applied(plain, edits), safe="/:@!$&'()*+,;=~") if edits else path
    query = applied(query, forms.coded(query, finder))
    return f"{scheme}{slashes}{login}{at}{name}{slash}{path}{mark}{query}"


def headers(given: Headers, finder: Finder) -> Headers:
    """Headers without secrets: of cookies the names are kept, of what is secret nothing."""
    scope = finder.scope("\n".join([value for _name, value in given]))
    return tuple([(name, _header(name.lower(), value, finder, scope)) for name, value in given])


_ADDRESSES = frozenset({"location", "content-location", "referer"})


def _header(name: str, value: str, finder: Finder, scope: Scope) -> str:
    if name == "cookie":
        return "; ".join([_cookie(each.strip(), finder) for each in value.split(";")])
    if name == "set-cookie":
        told, semicolon, how = value.partition(";")
        return _cookie(told, finder) + semicolon + how
    if finder.names.header(name):
        return REDACTED if finder.hides(value) else value
    if name in _ADDRESSES:
        return address(value, finder)
    return finder.redacted(value, scope)


def _cookie(told: str, finder: Finder) -> str:
    """A cookie without its value; one without a name is all value."""
    name, equals, value = told.partition("=") if "=" in told else ("", "", told)
    return name + equals + (REDACTED if finder.hides(value) else value)


def learn(given: Headers, finder: Finder) -> None:
    """Take what headers hold as secret: each cookie, and else what stands behind the word that says
    how it is meant.
    """
    for name, value in given:
        if name.lower() in ("cookie", "set-cookie"):
            for each in value.split(";")[: None if name.lower() == "cookie" else 1]:
                _take(each.partition("=")[2].strip(' "'), finder)
        elif finder.names.header(name):
            scheme, _, secret = value.strip().rpartition(" ")
            _take(secret, finder)
            if scheme.lower() == "basic":
                _take(_password(secret), finder)


def _take(value: str, finder: Finder) -> None:
    if finder.hides(value):
        finder.known.learn(value)


def _password(login: str) -> str:
    try:
        return base64.b64decode(login, validate=True).decode(errors="replace").partition(":")[2]
    except binascii.Error:
        return ""
