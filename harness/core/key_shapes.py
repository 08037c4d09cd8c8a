"""What keys, tokens and passwords of known services look like: a table, and a search by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

OPENAI = "OpenAI's documentation; GitHub's secret scanning patterns"
ANTHROPIC = "Anthropic's documentation; GitHub's secret scanning patterns"
GOOGLE = "Google Cloud's documentation of credentials"
GITHUB = "GitHub's documentation of token formats"
GITLAB = "GitLab's documentation of token prefixes"
SLACK = "Slack's documentation of token types"
STRIPE = "Stripe's documentation of API keys"
SCANNING = "GitHub's secret scanning patterns"
OWN = "the service's own documentation"


class Shape(Struct, frozen=True, dict=True):
    """One kind of key: its name, what it looks like, and where that is known from.

    `hint` is what stands in every such key: a text without it is not searched. `pattern` is the
    regular expression of the key, which begins where a word does. `cut`, where it is
    not empty, is what already gives a key away of which a part is missing, or that is made up; it
    fits more than keys, and serves where something is hidden rather than reported. `other`, where
    it is not empty, is the name of the secret that stands within two lines behind such a key.
    """

    name: str
    pattern: str
    source: str
    hint: str
    cut: str = ""
    other: str = ""

    @cached_property
    def whole(self) -> re.Pattern[str]:
        """What a key of this kind is."""
        return re.compile(self.pattern, re.ASCII)

    @cached_property
    def any(self) -> re.Pattern[str]:
        """What a key of this kind is, or a part of one."""
        return re.compile(self.cut or self.pattern, re.ASCII)


class Found(Struct, frozen=True):
    """A key in a text: what it is, where it begins and where it ends."""

    name: str
    start: int
    end: int


def _key(name: str, start: str, rest: str, source: str, cut: str = "") -> Shape:
    """A key that begins with a text of its own."""
    begin = re.escape(start)
    return Shape(name, begin + rest, source, start, begin + cut if cut else "")


_ODD = r"(?=[\w-]{0,400}[A-Z0-9])[\w-]{6,400}"
"""Part of a key, and no name in small letters, of which many begin as keys do."""
_PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[Shape, ...] = (
    _key("an OpenRouter key", "sk-or-", r"v1-[0-9a-f]{64}", SCANNING),
    _key("an Anthropic key", "sk-ant-", r"[a-z]{2,10}\d{2}-[\w-]{40,400}", ANTHROPIC),
    _key("an OpenAI project key", "sk-proj-", r"[\w-]{20,400}", OPENAI),
    _key("an OpenAI service account key", "sk-svcacct-", r"[\w-]{20,400}", OPENAI),
    _key("an OpenAI admin key", "sk-admin-", r"[\w-]{20,400}", OPENAI),
    _key("a Langfuse key", "sk-lf-", r"[0-9a-f-]{36}", OWN),
    _key("an OpenAI key", "sk-", r"(?=[\w-]{0,400}\d)[A-Za-z0-9_-]{20,400}", OPENAI, _ODD),
    _key("a Google API key", "AIza", r"[\w-]{35}", GOOGLE, r"[\w-]{8,400}"),
    _key("a Google OAuth token", "ya29.", r"[\w-]{20,2000}", GOOGLE),
    _key("a Google OAuth client secret", "GOCSPX-", r"[\w-]{20,400}", GOOGLE),
    _key("a Google refresh token", "1//0", r"[\w-]{40,400}", GOOGLE),
    *[
        Shape(
            "an AWS access key id",
            start + r"[A-Z2-7]{16}",
            "AWS's documentation of unique ids",
            start,
            other="an AWS secret access key",
        )
        for start in ("AKIA", "ASIA")
    ],
    *[
        _key("a GitHub token", start, r"[A-Za-z0-9]{36,255}", GITHUB, r"\w{8,400}")
        for start in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
    ],
    _key("a GitHub token", "github_pat_", r"\w{50,255}", GITHUB, r"\w{8,400}"),
    *[
        _key("a GitLab token", start, r"[\w-]{20,300}", GITLAB)
        for start in ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-")
    ],
    *[
        _key("a Slack token", start, r"(?=[\w-]{0,300}\d)[A-Za-z0-9-]{20,300}", SLACK)
        for start in ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-")
    ],
    Shape(
        "a Slack webhook",
        r"hooks\.slack\.com/services/T\w{6,20}/B\w{6,20}/\w{16,40}",
        SLACK,
        "hooks.slack.com",
    ),
    *[
        _key("a Stripe key", start, r"[A-Za-z0-9]{16,250}", STRIPE)
        for start in ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_")
    ],
    _key("a Hugging Face token", "hf_", r"[A-Za-z0-9]{30,60}", SCANNING),
    _key("a Groq key", "gsk_", r"[A-Za-z0-9]{40,80}", SCANNING),
    _key("an xAI key", "xai-", r"[A-Za-z0-9]{60,100}", SCANNING),
    _key("a Perplexity key", "pplx-", r"[A-Za-z0-9]{40,80}", SCANNING),
    _key("a Replicate token", "r8_", r"[A-Za-z0-9]{37}", SCANNING),
    _key("a Cerebras key", "csk-", r"[a-z0-9]{40,60}", OWN),
    _key("an NVIDIA key", "nvapi-", r"[\w-]{60,80}", SCANNING),
    _key("a Together key", "tgp_v1_", r"[\w-]{40,60}", OWN),
    _key("an ElevenLabs key", "sk_", r"[0-9a-f]{48}", OWN),
    _key("a LangSmith key", "lsv2_", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", SCANNING),
    _key("a Tavily key", "tvly-", r"[\w-]{20,80}", OWN),
    _key("a Pinecone key", "pcsk_", r"\w{40,90}", SCANNING),
    _key("a Databricks token", "dapi", r"[0-9a-f]{32}(?:-\d)?", SCANNING),
    _key("an npm token", "npm_", r"[A-Za-z0-9]{36}", SCANNING),
    _key("a PyPI token", "pypi-", r"AgEI[\w-]{50,1000}", "PyPI's documentation of API tokens"),
    _key("a SendGrid key", "SG.", r"[\w-]{16,32}\.[\w-]{32,64}", SCANNING),
    _key("a DigitalOcean token", "dop_v1_", r"[0-9a-f]{64}", SCANNING),
    *[
        _key("a Shopify token", start, r"[0-9a-fA-F]{32}", SCANNING)
        for start in ("shpat_", "shpca_", "shppa_", "shpss_")
    ],
    _key("a Vault token", "hvs.", r"[\w-]{60,200}", SCANNING),
    _key("a Linear key", "lin_api_", r"[A-Za-z0-9]{40}", SCANNING),
    _key("a Notion token", "ntn_", r"[A-Za-z0-9]{40,60}", SCANNING),
    _key("a Postman key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}", SCANNING),
    _key("a Grafana token", "glsa_", r"[A-Za-z0-9]{32}_[0-9a-f]{8}", SCANNING),
    _key("a Supabase token", "sbp_", r"[0-9a-f]{40}", SCANNING),
    _key("an Atlassian token", "ATATT3", r"[\w-]{60,250}", SCANNING),
    Shape(
        "a Telegram bot token",
        r"(?:bot)?\d{8,10}:AA[\w-]{32,35}",
        "Telegram's documentation of bots",
        ":AA",
    ),
    _key("an Azure signature", "sig=", r"[A-Za-z0-9%/+]{43,90}(?:%3D|=)", "Azure's documentation"),
    _key("an Azure account key", "AccountKey=", r"[A-Za-z0-9+/]{86}==", "Azure's documentation"),
    _key(
        "a JSON web token",
        "eyJ",
        r"[\w-]{8,2000}\.[\w-]{8,8000}\.[\w-]{16,2000}",
        "RFC 7519",
        r"[\w-]{2,2000}\.[\w-]{2,8000}(?:\.[\w-]{0,8000}){1,4}",
    ),
    _key(
        "a private key",
        "-----BEGIN ",
        _PEM + rf"(?:(?!-----)[\s\S])*+(?:-----END {_PEM})?",
        "RFC 7468",
    ),
)
"""The kinds of keys; where a key is of several, the first one names it."""

SHORTEST = 9
"""How many characters a key has at least, or a part that gives one away."""

_POSSIBLE = {
    (dash, line): tuple(
        [
            shape
            for shape in SHAPES
            if (dash or "-" not in shape.hint) and (line or "_" not in shape.hint)
        ]
    )
    for dash in (False, True)
    for line in (False, True)
}
"""The kinds that a text may hold that has a dash, or an underscore: prose mostly has neither."""
_ESCAPED = re.compile(r"(?:\\[nrtbf]|%(?:25){0,8}[0-9A-Fa-f]{2})\Z")
_TAIL = re.compile(r"[\w-]*+", re.ASCII)
_OTHER = re.compile(
    r"(?:[^\n]{0,200}\n){0,2}?[^\n]{0,200}?(?:(?<![A-Za-z0-9+/])|(?<=\\[nrt]))"
    r"((?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])(?=[A-Za-z+/]{0,39}[0-9])"
    r"[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])"
)
"""40 characters of base64, small letters, capitals and digits, and what stands before them."""


def likely(text: str) -> tuple[Shape, ...]:
    """The kinds of which a text may hold a key: quick to say, and mostly none."""
    if len(text) < SHORTEST:
        return ()
    shapes = _POSSIBLE["-" in text, "_" in text]
    return tuple([shape for shape in shapes if shape.hint in text])


def find(text: str, shapes: Iterable[Shape] | None = None, *, cut: bool = False) -> Iterator[Found]:
    """The keys in a text, kind by kind; with `cut` also parts of keys. `shapes` are the only ones
    that are looked for; without them, those that are likely.

    >>> text = "ask with hf_" + "aB3" * 12
    >>> [(each.name, text[each.start :][:6]) for each in find(text)]
    [('a Hugging Face token', 'hf_aB3')]
    """
    for shape in likely(text) if shapes is None else shapes:
        yield from _of(shape, shape.any if cut else shape.whole, text)


def _of(shape: Shape, pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    at = 0
    while found := pattern.search(text, at):
        start, end = found.span()
        if not _begins(text, start):
            at = start + 1
            continue
        tail = _TAIL.match(text, end)
        assert tail is not None
        at = tail.end()
        yield Found(shape.name, start, at)
        other = _OTHER.match(text, at) if shape.other else None
        if other is not None:
            yield Found(shape.other, *other.span(1))


def _begins(text: str, at: int) -> bool:
    """Whether a word begins here, also behind an escape of JSON or of an address."""
    if at == 0:
        return True
    before = text[at - 1]
    if not (before.isascii() and before.isalnum()):
        return True
    return _ESCAPED.search(text, max(0, at - 19), at) is not None
