"""A YAML file in; its tree, a noun made of it, and what is wrong, each with its line, out."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from sluice.adapters.spec_problems import problems_of
from sluice.adapters.yaml_positions import Path, Problem, YamlTree, parse_yaml

_tree_of: Final = lru_cache(maxsize=16)(parse_yaml)
"""The same bytes are the same tree, which nobody alters: a DAG file reads the stages twice, a run many times."""


def read_yaml(file: FilePath) -> tuple[YamlTree, list[Problem]]:
    """Return the tree of a file, and what is wrong with its form; of one that cannot be read an empty one."""
    try:
        tree = _tree_of(file.read_bytes())
    except FileNotFoundError:
        return YamlTree(), [Problem((), "there is no such file")]
    except OSError as error:
        return YamlTree(), [Problem((), f"cannot be read: {error.strerror}")]
    return tree, [*tree.problems]


def validated(model: type[BaseModel], value: Any, texts: Mapping[Path, str]) -> tuple[Any, list[Problem]]:
    """Return the noun that a value stands for, or what is wrong with it; `texts` are its scalars as written."""
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, problems_of(model, error, texts)


def spelled(shown: str, tree: YamlTree, problems: Iterable[Problem]) -> list[str]:
    """Return the problems as `file:line: key: message`, by line, each once."""
    lines: dict[tuple[int, str], None] = {}
    for path, message, line in problems:
        place = spell(path)
        lines[line or tree.line(path), f"{place}: {message}" if place else message] = None
    return [f"{shown}:{number}: {text}" for number, text in sorted(lines, key=lambda entry: entry[0])]


def spell(path: Path) -> str:
    """Return a path as people write it: `fields[3].type`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
