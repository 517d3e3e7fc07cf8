"""Named queries out of a `.sql` file: in goes a package and a file name, out come the statements by name."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Final, LiteralString, cast

_NAME: Final = re.compile(r"^-- name: ([a-z_]+)\n", re.MULTILINE)


class Queries(Mapping[str, LiteralString]):
    """The statements of one `.sql` file.

    Each stands below a line `-- name: x` and a sentence, as a comment, that says what it is for. The text ships with the
    package and nothing is ever put into it, hence LiteralString.
    """

    def __init__(self, package: str, file: str) -> None:
        _, *parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
        self._file = file
        self._statements = dict(zip(parts[::2], parts[1::2], strict=True))

    def __getitem__(self, name: str) -> LiteralString:
        if name not in self._statements:
            raise KeyError(f"{self._file} has no query {name}; it has {', '.join(sorted(self._statements))}")
        return cast("LiteralString", self._statements[name].strip())

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)
