"""The documents show what really happens: each is run, and the runner itself is tried."""

from __future__ import annotations

import re
from inspect import getdoc, isclass, isfunction
from pathlib import Path

import pytest
import yaml

import harness
from harness.core.errors import HarnessError
from harness.testing.options_plugin import _SETTINGS
from tests.doc_blocks import DocError, blocks, rewrite, run_document
from tests.doc_site import on_page_markdown
from tests.make_reference import GENERATED, REFERENCE

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])

SAMPLE = """\
# A sample

```yaml file=data/case.yaml
about: a case
```

```console
$ cat data/case.yaml
about: a case
$ echo one && echo two >&2
one
two
$ echo a \\
> b
a …
$ seq 1 9
1
...
9
$ true
```

```console exit=3
$ exit 3
```

Text between.

```python
import pathlib
print(pathlib.Path("data/case.yaml").read_text())
print("é")
```

```text
about: a case

é
```

```python
x = 1
```

```console not-run
$ rm -rf everything
```

```sh
also not run
```

~~~~text
```
a fence in a fence
```
~~~~
"""


def document(folder: Path, text: str) -> Path:
    path = folder / "sample.md"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_document_is_true(path: Path) -> None:
    run_document(path)


def test_commands_of_make_that_documents_show_are_there() -> None:
    targets = set(
        re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    for path in DOCUMENTS:
        for block in blocks(path.read_text(encoding="utf-8")):
            shown = re.findall(r"^(?:\$ )?make (\w+)$", "\n".join(block.lines), re.MULTILINE)
            assert set(shown) <= targets, path.name


def prose(text: str) -> str:
    """A document without its blocks and its quoted code."""
    inside = {
        number
        for block in blocks(text)
        for number in range(block.line, block.line + len(block.lines) + 2)
    }
    lines = enumerate(text.splitlines(), 1)
    return re.sub(r"`[^`\n]+`", "", "\n".join(line for at, line in lines if at not in inside))


def anchors(path: Path) -> set[str]:
    """What the headings of a document can be linked to by."""
    text = path.read_text(encoding="utf-8")
    inside = {number for b in blocks(text) for number in range(b.line, b.line + len(b.lines))}
    heads = [
        line.lstrip("#").strip().lower().replace("`", "")
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith("#") and number not in inside
    ]
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head)) for head in heads}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", prose(path.read_text(encoding="utf-8")))
    for link in [link for link in links if "://" not in link]:
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_as_the_code_says(name: str) -> None:
    made = GENERATED[name]()
    assert (REFERENCE / name).read_text(encoding="utf-8") == made, "python -m tests.make_reference"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    shown = re.findall(r"^::: harness\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(harness.__all__)


def test_an_error_that_a_public_docstring_names_has_its_place_in_the_reference() -> None:
    page = (REPOSITORY / "docs/reference/python.md").read_text(encoding="utf-8")
    public = [getattr(harness, name) for name in harness.__all__]
    parts = [part for each in public if isclass(each) for part in vars(each).values()]
    told = " ".join([getdoc(each) or "" for each in (*public, *filter(isfunction, parts))])
    kinds = [HarnessError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    named = {each.__name__ for each in kinds if re.search(rf"\b{each.__name__}\b", told)}
    assert {"UsageError", "FileError", "ReplayMismatch"} <= named
    assert named <= set(re.findall(r"^::: harness\.(?:\w+\.)*(\w+)$", page, re.MULTILINE))


def test_the_page_on_pytest_names_all_that_its_plugin_has() -> None:
    page = (REPOSITORY / "docs/how-to/pytest.md").read_text(encoding="utf-8")
    files = (REPOSITORY / "harness" / "testing").glob("*plugin.py")
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    options = re.findall(r'addoption\(\s*"(--[\w-]+)"', code)
    fixtures = re.findall(r"^@pytest.fixture\ndef (\w+)", code, re.MULTILINE)
    markers = re.findall(r'"markers",\s*"(\w+\(\w+)', code)
    assert (len(options), len(fixtures), len(markers)) == (7, 10, 2)
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    told = {word.partition(" ")[0] for row in rows for word in re.findall(r"`([^`]+)`", row)}
    assert {*options, *fixtures, *_SETTINGS} <= told
    assert all(f"| `{marker}" in page for marker in markers)


def test_the_findings_of_the_readme_are_among_those_that_are_held() -> None:
    row = re.compile(
        r"^\| ([\w-]+ [\d.]+) \|(?: \[\w+\][^|]*\|)? ([A-Z-]+) \| ([\w ]+) \|", re.MULTILINE
    )
    told, held = (
        {match.groups() for match in row.finditer(path.read_text(encoding="utf-8"))}
        for path in (REPOSITORY / "README.md", REPOSITORY / "docs" / "findings.md")
    )
    assert len(told) == 5
    assert told <= held


def test_every_page_stands_in_the_contents_of_the_site() -> None:
    site = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = re.findall(r"[\w/-]+\.md", str(site["nav"]))
    pages = [path.relative_to(REPOSITORY / "docs") for path in REPOSITORY.glob("docs/**/*.md")]
    assert sorted(listed) == sorted(page.as_posix() for page in pages)


def test_the_site_shows_the_names_of_files_and_leaves_out_what_tests_need() -> None:
    page = "```yaml file=a/b.yaml\nx: 1\n```\n\n```console exit=1\n$ false\n```\n\n```sh\nls\n```\n"
    shown = '```yaml title="a/b.yaml"\nx: 1\n```\n\n```console\n$ false\n```\n\n```sh\nls\n```\n'
    assert on_page_markdown(page, page=None, config={}) == shown


def test_a_true_document_runs_whole(tmp_path: Path) -> None:
    assert run_document(document(tmp_path, SAMPLE)) == 8


def test_a_document_may_use_the_files_of_another_and_run_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("```yaml file=data/a.yaml\nx: 1\n```\n```sh\nls\n```\n")
    text = """\
<!-- files of other.md -->

```console in=data
$ cat a.yaml
x: 1
```

```python in=data
import pathlib
print(pathlib.Path("a.yaml").read_text())
```

```text
x: 1

```
"""
    assert run_document(document(tmp_path, text)) == 2


@pytest.mark.parametrize(
    ("old", "new", "report"),
    [
        ("one\ntwo\n$", "one\n$", "sample.md:10: what is printed is not what is said"),
        ("a …", "a … c", "sample.md:13: what is printed is not what is said"),
        ("\n9\n", "\n8\n", "sample.md:16: what is printed is not what is said"),
        ("$ true", "$ false", "sample.md:20: exit code 1, expected 0"),
        ("$ exit 3", "$ exit 4", "sample.md:24: exit code 4, expected 3"),
        ("\né\n```\n", "\ne\n```\n", "sample.md:29: what is printed is not what is said"),
        ("x = 1", "print(1)", "sample.md:41: what is printed is not what is said"),
        ("x = 1", "x = y", "sample.md:41: exit code 1, expected 0"),
        ("$ cat", "cat", "line 8: output without a command"),
        ("~~~~\n", "", "line 53: the block is never closed"),
    ],
)
def test_a_false_document_is_told(tmp_path: Path, old: str, new: str, report: str) -> None:
    assert SAMPLE.count(old) >= 1
    index = SAMPLE.rindex(old)
    path = document(tmp_path, SAMPLE[:index] + new + SAMPLE[index + len(old) :])
    with pytest.raises(DocError) as caught:
        run_document(path)
    assert str(caught.value).startswith(report)


def test_what_is_printed_can_be_written_into_the_document(tmp_path: Path) -> None:
    stale = SAMPLE.replace("one\ntwo\n", "three\n").replace("about: a case\n\né\n", "old\n")
    path = document(tmp_path, stale)
    rewrite(path)
    assert path.read_text(encoding="utf-8") == SAMPLE
