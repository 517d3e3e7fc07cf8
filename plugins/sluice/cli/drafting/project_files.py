"""A project's include folder and a draft in; the files of the new sync, in their places among those that are there, out."""

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from sluice.adapters.spec_files import STAGES_FILE, SpecFiles
from sluice.cli.drafting.draft import Draft
from sluice.cli.drafting.look import drafted
from sluice.cli.drafting.placing import place
from sluice.cli.drafting.stages_file import with_stage
from sluice.errors import UsageInvalid
from sluice.model.sharding import NAME_PATTERN


@dataclass(frozen=True)
class Stages:
    """The file of the stages, as it is to be."""

    text: str
    is_new: bool
    """Whether a stage was added."""


class Project:
    """The folder that the files go to."""

    def __init__(self, include: Path) -> None:
        self._include = include
        self._files = SpecFiles(include)
        self._stages_path = include / STAGES_FILE

    @property
    def stages(self) -> list[str]:
        """The stages that are declared."""
        return self._files.stages()

    def spec_and_dag(self, name: str) -> tuple[Path, Path]:
        """Return where the two files of a sync stand."""
        return self._files.sync_path(name), self._include.parent / "dags" / f"{name}.py"

    def refuse(self, name: str) -> None:
        """Raise `UsageInvalid` for a name that cannot be one, or is taken."""
        if not re.fullmatch(NAME_PATTERN, name) or keyword.iskeyword(name):
            raise UsageInvalid(f"{name!r} is no name for a sync: lower-case letters, digits and _, a letter first")
        for path in self.spec_and_dag(name):
            if path.exists():
                raise UsageInvalid(f"{self.shown(path)} is already there: choose another name, or remove it first")

    def with_stage(self, draft: Draft) -> Stages:
        """Return the file of the stages, with the draft's in it."""
        present = self._stages_path.read_text(encoding="utf-8") if self._stages_path.exists() else None
        comment = f"{draft.name}: the defaults above hold for it, unless it says otherwise, such as `requests_per_second: 5`."
        changed = with_stage(present, draft.stage, comment)
        return Stages(present or "" if changed is None else changed, is_new=changed is not None)

    def write(self, draft: Draft, stages: Stages) -> list[str]:
        """Write all files or none, and return which; raise `SpecInvalid` if they could not be used."""
        spec, dag = self.spec_and_dag(draft.name)
        texts = {spec: draft.spec_text, dag: draft.dag_text, **({self._stages_path: stages.text} if stages.is_new else {})}
        with drafted(draft, stages.text):
            place(texts)
        return [self.shown(path) for path in texts]

    def shown(self, path: Path) -> str:
        """Return a path as seen from the project's folder."""
        return str(path.relative_to(self._include.parent))
