"""The files of `include/expectations` in; suites out, or every mistake with its file, line and key.

Great Expectations itself is not imported: whether an expectation can be checked at all shows when it is.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sluice.adapters.spec_problems import suggest
from sluice.adapters.suite_rules import broken_rules
from sluice.adapters.yaml_files import read_yaml, spelled, validated
from sluice.adapters.yaml_positions import Problem
from sluice.model.fields import TypeName
from sluice.model.quality import Suite
from sluice.model.sharding import NAME_PATTERN

FOLDER: Final = "expectations"
_ENDINGS: Final = (".yaml", ".json")


class SuiteFiles:
    """Reads the folder afresh at every call: `NAME.yaml`, or `NAME.json` as the library itself writes it."""

    def __init__(self, include: Path) -> None:
        self._folder = include / FOLDER
        self._shown = f"{include.resolve().name}/{FOLDER}"

    def absence(self, name: str) -> str | None:
        """Return why no file can be meant by that name; None: there is one."""
        found = self._files(name)
        if len(found) == 1 or not re.fullmatch(NAME_PATTERN, name):  # a name that is none is told by its pattern
            return None
        if found:
            return f"{self._shown} has both {' and '.join(file.name for file in found)}: remove one of them"
        there = sorted(file.stem for ending in _ENDINGS for file in self._folder.glob(f"*{ending}"))
        return f"no file {self._shown}/{name}.yaml or .json; {suggest(name, there, 'there are')}"

    def read(self, name: str, types: Mapping[str, TypeName]) -> tuple[Suite | None, list[str]]:
        """Return a suite for a table with fields of these types, and all that is wrong with it; with None if it is absent."""
        files = self._files(name)
        if len(files) != 1:
            return None, []
        tree, problems = read_yaml(files[0])
        value = tree.value
        if files[0].suffix == ".json":
            value, problems = _json(files[0], value, problems)
        suite: Suite | None = None
        if isinstance(value, dict):
            suite, wrong = validated(Suite, value, tree.texts)
            problems += wrong
            problems += broken_rules(value, types)
        lines = spelled(f"{self._shown}/{files[0].name}", tree, problems)
        return (None if lines else suite), lines

    def _files(self, name: str) -> list[Path]:
        if not re.fullmatch(NAME_PATTERN, name):
            return []
        return [file for ending in _ENDINGS if (file := self._folder / f"{name}{ending}").is_file()]


def _json(file: Path, value: Any, problems: list[Problem]) -> tuple[Any, list[Problem]]:
    """Return what a file of JSON holds, and what is wrong with it; `value` and `problems` are what YAML makes of it."""
    try:
        found = json.loads(file.read_bytes())
    except json.JSONDecodeError as error:
        return None, [Problem((), f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}", error.lineno)]
    except ValueError as error:
        return None, [Problem((), f"not valid JSON: {error}")]
    except OSError:
        return value, problems
    # Its escapes are not all YAML's.
    return found, problems if value is not None or not isinstance(found, dict) else []
