"""The files of `include/` in; specs, their suites and stage policies out, or every mistake with its file, line and key."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from sluice.adapters import pattern_rules, stage_rules
from sluice.adapters.spec_draft import Draft
from sluice.adapters.spec_problems import suggest
from sluice.adapters.spec_rules import broken_rules
from sluice.adapters.suite_files import SuiteFiles
from sluice.adapters.yaml_files import read_yaml, spelled, validated
from sluice.adapters.yaml_positions import Path, Problem
from sluice.errors import SpecInvalid
from sluice.model.quality import Suite
from sluice.model.sharding import NAME_PATTERN
from sluice.model.spec import STAGE_PATTERN, SyncSpec
from sluice.model.stage import StagePolicy, StageRegistry

STAGES_FILE: Final = "stages.yaml"
SYNCS_FOLDER: Final = "syncs"


class SpecFiles:
    """Reads the folder afresh at every call; no file is read that is not asked for, so a bad one hinders no other."""

    def __init__(self, include: FilePath) -> None:
        self._include = include
        self._shown = include.resolve().name
        self._suites = SuiteFiles(include)

    def names(self) -> list[str]:
        """Return the names of all syncs, without reading their files."""
        return sorted(path.stem for path in (self._include / SYNCS_FOLDER).glob("*.yaml"))

    def stages(self) -> list[str]:
        """Return the names of all stages, whatever is wrong with them."""
        return sorted(_Stages(self._include / STAGES_FILE, f"{self._shown}/{STAGES_FILE}").merged)

    def sync(self, name: str, *, tries_patterns: bool = True) -> SyncSpec:
        """Return the spec of a sync; raise `SpecInvalid` with all that is wrong with it.

        To try the patterns of its fields takes libraries that no DAG file loads.
        """
        if unknown := self._unknown(name):
            raise SpecInvalid(unknown)
        return self._usable(self.sync_path(name), tries_patterns=tries_patterns)

    def sync_in(self, file: FilePath) -> SyncSpec:
        """Return the spec in a file, which may stand anywhere; raise `SpecInvalid` with all that is wrong with it."""
        return self._usable(file, tries_patterns=True)

    def suite(self, spec: SyncSpec) -> Suite:
        """Return the suite that a spec names; raise `SpecInvalid` with all that is wrong with it, or that it is not there."""
        name = spec.review.expectations or ""
        suite, lines = self._suites.read(name, {field.name: field.type.name for field in spec.fields})
        if absent := self._suites.absence(name):
            raise SpecInvalid([f"review.expectations: {absent}"])
        if suite is None:
            raise SpecInvalid(lines)
        return suite

    def placed(self, file: FilePath, told: Iterable[tuple[Path, str]]) -> list[str]:
        """Return what is told of keys of a sync's file, each with its line."""
        tree, _ = read_yaml(file)
        return spelled(self._shown_path(file), tree, [Problem(path, message) for path, message in told])

    def placed_in_stages(self, stage: str, told: Iterable[tuple[Path, str]]) -> list[str]:
        """Return what is told of keys of a stage's policy, each with its line, be that among the defaults."""
        stages = _Stages(self._include / STAGES_FILE, f"{self._shown}/{STAGES_FILE}")
        return stages.placed(Problem(("stages", stage, *path), message) for path, message in told)

    def sync_path(self, name: str) -> FilePath:
        """Return where the file of a sync stands, or would."""
        return self._include / SYNCS_FOLDER / f"{name}.yaml"

    def policy(self, stage: str) -> StagePolicy:
        """Return the policy of a stage; raise `SpecInvalid` with all that is wrong with it. Other stages do not matter."""
        stages = _Stages(self._include / STAGES_FILE, f"{self._shown}/{STAGES_FILE}")
        problems = stages.problems_of(stage)
        if problems:
            raise SpecInvalid(problems)
        return StagePolicy.model_validate(stages.merged[stage])

    def check(self, name: str | None = None) -> list[str]:
        """Return every problem of one sync and of its stage, or of all files; empty if they can be used."""
        stages = _Stages(self._include / STAGES_FILE, f"{self._shown}/{STAGES_FILE}")
        if name is not None:
            return self._unknown(name) or self._problems_of(name, stages)
        problems = stages.problems()
        for sync in self.names():
            problems += self._read_sync(self.sync_path(sync))[1]
        for path in sorted((self._include / SYNCS_FOLDER).glob("*.yml")):
            problems.append(f"{self._shown}/{SYNCS_FOLDER}/{path.name}:1: name it {path.stem}.yaml, or it is not read")
        return problems

    def _unknown(self, name: str) -> list[str]:
        if re.fullmatch(NAME_PATTERN, name) and self.sync_path(name).is_file():
            return []
        if name in self.names():
            wrong = "is no name for a sync: lower-case letters, digits and _, a letter first"
            return [f"{self._shown}/{SYNCS_FOLDER}/{name}.yaml: {name!r} {wrong}"]
        return [f"{self._shown}/{SYNCS_FOLDER}: no sync {name!r}; {suggest(name, self.names(), 'there are')}"]

    def _problems_of(self, name: str, stages: "_Stages") -> list[str]:
        _, problems, stage = self._read_sync(self.sync_path(name))
        # A stage that the other file does not declare is told with the sync's own lines.
        if isinstance(stage, str) and (stage in stages.merged or not stages.merged):
            problems += stages.problems_of(stage)
        return problems

    def _shown_path(self, file: FilePath) -> str:
        return f"{self._shown}/{SYNCS_FOLDER}/{file.name}" if file.parent == self._include / SYNCS_FOLDER else str(file)

    def _usable(self, file: FilePath, *, tries_patterns: bool) -> SyncSpec:
        spec, problems, _ = self._read_sync(file, tries_patterns=tries_patterns)
        if spec is None:
            raise SpecInvalid(problems)
        return spec

    def _read_sync(self, file: FilePath, *, tries_patterns: bool = True) -> tuple[SyncSpec | None, list[str], Any]:
        """Return the spec, if it can be used, all that is wrong with it, and the stage as it is written."""
        tree, problems = read_yaml(file)
        spec: SyncSpec | None = None
        stage: Any = None
        if isinstance(tree.value, dict):
            stage = tree.value.get("stage")
            spec, wrong = validated(SyncSpec, tree.value, tree.texts)
            problems += wrong
            problems += broken_rules(tree.value, file.stem, tree.texts)
            if tries_patterns:
                problems += pattern_rules.broken_rules(Draft(tree.value))
            problems += self._undeclared_stage(stage)
            problems += self._absent_suite(tree.value)
        lines = spelled(self._shown_path(file), tree, problems)
        if spec is not None and not lines and spec.review.expectations is not None:
            _, lines = self._suites.read(spec.review.expectations, {field.name: field.type.name for field in spec.fields})
        return (None if lines else spec), lines, stage

    def _absent_suite(self, raw: Mapping[str, Any]) -> Iterable[Problem]:
        review = raw.get("review")
        name = review.get("expectations") if isinstance(review, dict) else None
        if isinstance(name, str) and (absent := self._suites.absence(name)):
            yield Problem(("review", "expectations"), absent)

    def _undeclared_stage(self, stage: Any) -> Iterable[Problem]:
        tree, _ = read_yaml(self._include / STAGES_FILE)
        stages = tree.value.get("stages") if isinstance(tree.value, dict) else None
        if isinstance(stage, str) and isinstance(stages, dict) and stage not in stages:
            yield Problem(
                ("stage",), f"no stage {stage!r} in {self._shown}/{STAGES_FILE}; {suggest(stage, stages, 'declared')}"
            )


class _Stages:
    """`stages.yaml`: each stage with the defaults merged into it, and all that is wrong."""

    def __init__(self, file: FilePath, shown: str) -> None:
        self._shown = shown
        self._tree, self._problems = read_yaml(file)
        self.merged: dict[str, Any] = {}
        root = self._tree.value
        if not isinstance(root, dict):
            return
        stages, defaults = root.get("stages"), root.get("defaults") or {}
        if isinstance(stages, dict):
            self.merged = {name: _merge(defaults, own if own is not None else {}) for name, own in stages.items()}
            root = {**root, "defaults": defaults, "stages": self.merged}
            self._problems += [
                Problem(("stages", name), f"{name!r} is no name for a stage: lower-case letters, digits and -")
                for name in stages
                if not re.fullmatch(STAGE_PATTERN, name)
            ]
        _, wrong = validated(StageRegistry, root, self._tree.texts)
        self._problems += wrong
        for name, policy in self.merged.items():
            self._problems += self._broken_rules(name, policy)

    def problems(self) -> list[str]:
        """Return every problem of the file."""
        return self.placed(self._problems)

    def placed(self, problems: Iterable[Problem]) -> list[str]:
        """Return problems with their lines."""
        return spelled(self._shown, self._tree, map(self._written, problems))

    def problems_of(self, stage: str) -> list[str]:
        """Return the problems that stand between a run and the policy of one stage."""
        relevant = [
            self._written(problem)
            for problem in self._problems
            if problem.path[:1] != ("stages",) or len(problem.path) == 1 or problem.path[1] == stage
        ]
        if not relevant and stage not in self.merged:
            relevant = [Problem(("stages",), f"no stage {stage!r}; {suggest(stage, self.merged, 'declared')}")]
        return spelled(self._shown, self._tree, relevant)

    def _written(self, problem: Problem) -> Problem:
        """Place a problem in `defaults` if that is where the stage's value was written."""
        path, lines = problem.path, self._tree.lines
        inherited: Path = ("defaults", *path[2:])
        if len(path) > len(("stages", "name")) and path[0] == "stages" and path not in lines and inherited in lines:
            return problem._replace(path=inherited)
        return problem

    def _broken_rules(self, name: str, policy: Any) -> Iterable[Problem]:
        """Yield each broken rule at the first of its keys that the stage itself has written, else at one of the defaults."""
        for keys, message in stage_rules.broken_rules(policy):
            own = [key for key in keys if ("stages", name, *key) in self._tree.lines]
            inherited = [key for key in keys if ("defaults", *key) in self._tree.lines]
            yield Problem(("stages", name, *(own or inherited or keys)[0]), message)


def _merge(defaults: Any, own: Any) -> Any:
    """Return `own` over `defaults`, mapping by mapping."""
    if not isinstance(defaults, dict) or not isinstance(own, dict):
        return own
    return {**defaults, **{key: _merge(defaults.get(key), value) for key, value in own.items()}}
