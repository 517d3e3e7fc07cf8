"""`python docs/list_commands.py` writes docs/reference/cli.md from the commands themselves, so that it cannot drift."""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

import typer

from sluice.cli.app import build_app
from sluice.ports import Connections

FOLDER: Final = Path(__file__).with_name("reference")

_HEAD: Final = """\
# Commands

Every command takes `--json`, which prints one JSON document to stdout and nothing else there. Before the command stand
`--verbose` (every log event, on stderr) and `--debug` (errors with their traceback).

"""


def pages() -> dict[Path, str]:
    """Return the text of the page."""
    root = typer.main.get_command(build_app(_no_airflow))
    panels = dict.fromkeys(command.rich_help_panel for command in root.commands.values())
    parts = (f"## {panel}\n\n" + "\n".join(_sections(root, "sluice", panel)) for panel in panels)
    return {FOLDER / "cli.md": f"{_HEAD}{root.epilog}\n\n" + "\n".join(parts)}


def _no_airflow() -> Connections:
    raise NotImplementedError("nothing is run")


def _sections(group: Any, words: str, panel: str | None = None) -> Iterator[str]:
    """Yield a section for each command of a group; with a panel, for those below it alone."""
    for name, command in group.commands.items():
        if panel not in (None, command.rich_help_panel):
            continue
        if hasattr(command, "commands"):
            yield from _sections(command, f"{words} {name}")
        else:
            yield _section(command, f"{words} {name}")


def _section(command: Any, words: str) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([words, *map(_usage, arguments), "[OPTIONS]"])
    prose, examples = _prose(command.help)
    rows = [f"| {_name(each)} | {_says(each)} |" for each in command.params if each.name != "as_json"]
    table = ["| | |", "| --- | --- |", *rows, ""] if rows else []
    return "\n".join([f"### {words}\n", f"```text\n{usage}\n```\n", prose, "", *table, *_shown(examples)])


def _usage(argument: Any) -> str:
    shown = _value(argument) + ("..." if argument.nargs != 1 else "")
    return shown if argument.required else f"[{shown}]"


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if parameter.metavar is None and isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    return parameter.metavar or parameter.name.upper()


def _name(parameter: Any) -> str:
    values = " or ".join(f"`{each.strip()}`" for each in _value(parameter).split("|"))
    if parameter.param_type_name == "argument":
        return values
    names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))
    return names if parameter.is_flag else f"{names} {values}"


def _says(parameter: Any) -> str:
    default = getattr(parameter.default, "value", parameter.default)
    is_told = parameter.param_type_name == "option" and not parameter.is_flag and default not in (None, "", (), [])
    words = [parameter.help or "", f"Default: `{default}`." if is_told else "", "Required." if _is_demanded(parameter) else ""]
    return " ".join(filter(None, words)).replace("|", "&#124;")


def _is_demanded(parameter: Any) -> bool:
    return parameter.required and parameter.param_type_name == "option"


def _prose(text: str) -> tuple[str, list[str]]:
    """Return the paragraphs of a docstring, and the command lines that it gives as examples."""
    paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip())]
    examples = [each.removeprefix("Example: ") for each in paragraphs if each.startswith("Example: ")]
    return "\n\n".join(each for each in paragraphs if not each.startswith("Example: ")), examples


def _shown(examples: list[str]) -> list[str]:
    return ["```console", *(f"$ {each}" for each in examples), "```", ""] if examples else []


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
