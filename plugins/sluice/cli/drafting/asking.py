"""The options of `sluice new`, and a person where one is there, in; the draft they describe out."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

import typer

from sluice.cli.drafting.choices import FORMATS, MEANINGS, Kind, Paging, Shards
from sluice.cli.drafting.draft import Draft
from sluice.errors import UsageInvalid
from sluice.model.source import PATH_PATTERN

Options = Mapping[str, Any]
"""What was said, by the names of `Draft`; None: nothing."""

_OF_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("rest",),
    "paging": ("rest",),
    "records": ("rest", "files"),
    "table": ("sql",),
    "files": ("files",),
    "bucket": ("files",),
    "format": ("files",),
    "code": ("code",),
    "watermark": ("rest", "sql", "code"),
    "shards": ("rest", "sql", "code"),
}
_WHERE: Final = "Where does the list of records stand, keys joined by dots?"
_OR_ALL: Final = "(empty: it is all there is)"


class Asking:
    """Takes what options say, else asks whoever is there, else takes the default."""

    def __init__(self, options: Options, *, is_there: bool) -> None:
        self._options = options
        self._is_there = is_there

    def text(self, name: str, question: str, default: str) -> str:
        """Return a text; one that is empty stands for nothing."""
        given = self._options.get(name)
        return self._asked(question, default) if given is None else str(given)

    def texts(self, name: str, question: str, default: str) -> tuple[str, ...]:
        """Return texts, which people write with commas between them."""
        given = self._options.get(name)
        listed = given or self._asked(question, default).split(",")
        return tuple(text.strip() for text in listed if text.strip()) or (default,)

    def choice(self, name: str, question: str, allowed: Sequence[str], default: str) -> Any:
        """Return one of some words; raise `UsageInvalid` if an option has another."""
        given = self._options.get(name)
        if given is None and self._is_there:
            self._explain(name)
        while given is None:
            written = self._asked(f"{question} ({', '.join(allowed)})", default)
            given = written if written in allowed else None
        if given not in allowed:
            raise UsageInvalid(f"--{name} {given!r} is not one of {', '.join(allowed)}")
        return given

    def _asked(self, question: str, default: str) -> str:
        if not self._is_there:
            return default
        return str(typer.prompt(question, default=default, show_default=bool(default), err=True)).strip()

    def _explain(self, name: str) -> None:
        for word, meaning in MEANINGS.get(name, {}).items():
            typer.echo(f"  {word:<9} {meaning}", err=True)


def drafted_by(name: str, options: Options, declared_stages: Sequence[str], *, is_there: bool) -> Draft:
    """Return the draft; raise `UsageInvalid` for options that do not go together."""
    ask = Asking(options, is_there=is_there)
    kind: Kind = ask.choice("kind", "What does the supplier offer?", get_args(Kind), "rest")
    for option, kinds in _OF_KINDS.items():
        if options.get(option) and kind not in kinds:
            raise UsageInvalid(f"--{option} is for --kind {' or '.join(kinds)}, not for {kind}")
    shown = f"; declared: {', '.join(declared_stages)}" if declared_stages else ""
    connection = ask.text("connection", "Which Airflow connection leads to it?", f"{name}_supplier")
    place = _place(name, kind, ask)
    key = ask.texts("key", "Which fields identify an object, with commas between them?", "id")
    version = ask.text("version", "Which field orders the versions of an object? (empty: none)", "")
    watermark = ""
    if kind in _OF_KINDS["watermark"]:
        watermark = ask.text(
            "watermark", "Which field grows with every change, so that runs ask for news only? (empty: none)", ""
        )
    shards: Shards = "none"
    if kind in _OF_KINDS["shards"]:
        shards = ask.choice("shards", "What is it to be cut into?", get_args(Shards), "none")
    return Draft(
        name=name,
        kind=kind,
        connection=connection,
        key=key,
        version=version or None,
        watermark=watermark or None,
        shards=shards,
        stage=ask.text("stage", f"Which stage is it of? (a new one is added{shown})", name.replace("_", "-")),
        target=ask.text("target", "Which table is to be kept in step?", f"public.{name}"),
        schedule=ask.text("schedule", "When does it run? (cron in UTC, or @daily; empty: when asked to)", "") or None,
        **place,
    )


def _place(name: str, kind: Kind, ask: Asking) -> dict[str, Any]:
    """Return where at the supplier records are."""
    match kind:
        case "rest":
            path = ask.text("path", "Under which path does it list records?", f"/{name}")
            if not re.fullmatch(PATH_PATTERN, path):
                raise UsageInvalid(
                    f"--path {path!r} has to begin with / and hold no ?, # or control sign: parameters belong under query"
                )
            paging: Paging = ask.choice("paging", "How does an answer lead to the next page?", get_args(Paging), "body")
            # What leads on stands beside the list, which then cannot be the whole answer.
            is_inside = paging in ("body", "next_url")
            records = ask.text("records", _WHERE if is_inside else f"{_WHERE} {_OR_ALL}", name if is_inside else "")
            return {"path": path, "records": records, "paging": paging}
        case "sql":
            return {"table": ask.text("table", "Which table?", f"public.{name}")}
        case "files":
            form = ask.choice("format", "What do the files hold?", FORMATS, "jsonl")
            bucket = ask.text("bucket", "In which S3 bucket are they? (empty: they come over HTTP)", "")
            default = f"{name}*.{form}" if bucket else f"/{name}.{form}"
            files = ask.texts("files", "Which files, * standing for anything?", default)
            records = ask.text("records", f"{_WHERE} {_OR_ALL}", "") if form in ("json", "xml") else ""
            return {"format": form, "bucket": bucket or None, "files": files, "records": records}
        case "code":
            return {"code": ask.text("code", "Which class?", f"suppliers.{name.title().replace('_', '')}")}
