"""Dead letters in memory."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sluice.model.artifact import ArtifactKind
from sluice.model.base import ObjectKey, RunId
from sluice.model.reject import Cause, Counted, DeadLetter, DeadLetterLines, DeadLetterStatus, Reject, Seen
from sluice.model.run import Mode, Run
from sluice.model.shard import Shard
from tests.unit.fakes.memory import Memory


class MemoryDeadLetterStore:
    """The port `DeadLetterStore`."""

    def __init__(self, memory: Memory, most: int = 1_000) -> None:
        self._memory = memory
        self._most = most

    def record(self, run: Run, shard: Shard, rejects: Iterable[Reject], artifact: str) -> None:
        """Open a dead letter for each object as long as its cause has room, or count one more delivery of it."""
        met = list(rejects)
        left: list[tuple[int, Reject]] = []
        with self._memory.lock:
            self._memory.still_shard(run.id, shard.key, shard.token)
            gone = self._end_twins(run, met) if run.mode is Mode.REDRIVE else set()
            last = {reject.identity: (line, reject) for line, reject in enumerate(met) if reject.raw_hash not in gone}
            noted = {(rest.raw_artifact, rest.cause) for rest in self._memory.lines.values() if rest.artifact == artifact}
            for line, reject in sorted(last.values(), key=lambda entry: entry[0]):
                if self._count_again(run, shard, reject) or (reject.address.artifact, reject.cause) in noted:
                    continue
                if len(self._open(run.sync, reject.cause)) < self._most:
                    self._memory.dead_letters.append(self._letter(run, shard, reject))
                else:
                    left.append((line, reject))
            self._note_lines(run, shard, artifact, left)

    def open_keys(self, sync: str) -> set[ObjectKey]:
        """Return the objects that have an open letter."""
        return {letter.reject.key for letter in self._memory.dead_letters if _is_open(letter, sync) and letter.reject.key}

    def close(self, run: Run, keys: Sequence[ObjectKey]) -> int:
        """Close the open dead letters of objects that came right."""
        self._memory.still_run(run.id, run.token)
        return self._end(run, lambda letter: letter.reject.key in keys and self._may_end(run, letter.run))

    def _may_end(self, run: Run, met_by: RunId) -> bool:
        """Whether a run tells of what another has met: a replay, whose data may be old, only of what it replays."""
        if run.mode is not Mode.REPLAY or met_by in (run.id, run.replays):
            return True
        began = self._memory.runs[met_by].created_at
        return run.window is not None and run.window.start <= began < run.window.end

    def close_absent(self, run: Run) -> int:
        """Close what the run has not met."""
        self._memory.still_run(run.id, run.token)
        own = self._own(run.id, ArtifactKind.RAW)
        rejects = self._own(run.id, ArtifactKind.REJECTS)
        for rest in list(self._memory.lines.values()):
            is_before = rest.sync == run.sync and rest.status is DeadLetterStatus.OPEN and rest.seen_at < run.created_at
            if is_before and rest.artifact not in rejects:
                del self._memory.lines[rest.id]
        why = "a run that saw all there is did not meet it"
        return self._end(
            run,
            lambda letter: letter.last_seen < run.created_at and letter.reject.address.artifact not in own,
            reason=why,
        )

    def lines(self, sync: str) -> list[DeadLetterLines]:
        """Return what has no letter of its own."""
        return [rest for _, rest in sorted(self._memory.lines.items()) if rest.sync == sync]

    def settle(self, run: Run, seen: Iterable[Seen], counted: Iterable[Counted]) -> None:
        """Take out of the rest what was seen again."""
        sights = {one.identity: one for one in seen}
        stands = [stand for stand in counted if stand.identity in sights]
        self._memory.still_run(run.id, run.token)
        for stand in stands:
            rest, one = self._memory.lines.get(stand.row), sights[stand.identity]
            if rest is None:
                continue
            if rest.status is DeadLetterStatus.OPEN and self._moves(run, rest, one):
                self._take_out(rest, {stand.line})
            elif one.line is not None and (rest.status is DeadLetterStatus.OPEN or one.raw_hash == stand.raw_hash):
                self._take_back(run, one)

    def _count_again(self, run: Run, shard: Shard, reject: Reject) -> bool:
        """Count another delivery of an object that has a letter; False if it has none."""
        index = self._index(run.sync, reject)
        if index is None and run.mode is Mode.REDRIVE:
            index = next((at for at, letter in enumerate(self._memory.dead_letters) if _is_named(run, letter, reject)), None)
        if index is None:
            return self._has_ended(run, reject)
        held, version = self._memory.dead_letters[index], shard.transformer_version or run.transformer_version
        is_given_up = held.status is DeadLetterStatus.DISCARDED
        is_same, is_ours = held.reject.address == reject.address, run.id in held.redriven_by
        if not is_given_up and not is_same and not self._is_news(run, held):
            return True
        if not is_same or (not is_given_up and held.transformer_version != version):
            again: dict[str, Any] = {
                "run": run.id,
                "shard": shard.key,
                "reject": reject,
                "attempts": held.attempts + 1,
                "last_seen": self._memory.clock.now(),
                "redriven_by": tuple(one for one in held.redriven_by if one != run.id) if is_ours or is_same else (),
                "transformer_version": version,
            }
            if not is_ours and not is_same:
                again["delivered_at"] = run.created_at
            self._memory.dead_letters[index] = held.model_copy(update=again)
        return True

    def _is_news(self, run: Run, held: DeadLetter) -> bool:
        if run.mode is Mode.REDRIVE:
            return run.id in held.redriven_by
        return held.delivered_at <= run.created_at

    def _has_ended(self, run: Run, reject: Reject) -> bool:
        """Whether the run has taken up the object's letter, which has ended since."""
        return any(
            run.id in letter.redriven_by
            and letter.ended_by != run.id
            and (letter.reject.identity == reject.identity or _is_of_its_bytes(letter, reject))
            for letter in self._memory.dead_letters
        )

    def _end_twins(self, run: Run, met: list[Reject]) -> set[str | None]:
        """Leave one letter of each object that nobody could name; return what the bytes of those that go hash to."""
        why = "another letter is of the same object"
        for key in {reject.key for reject in met if reject.key is not None}:
            own = [reject for reject in met if reject.key == key]
            found = [
                letter
                for letter in self._memory.dead_letters
                if _is_open(letter, run.sync)
                and (letter.reject.key == key or any(_is_named(run, letter, reject) for reject in own))
            ]
            newest = max(found, key=lambda letter: (letter.delivered_at, letter.id), default=None)
            ids = {letter.id for letter in found if letter is not newest}
            self._end(run, lambda letter, ids=ids: letter.id in ids, reason=why)
        ended = [letter for letter in self._memory.dead_letters if letter.ended_by == run.id and letter.reason == why]
        return {letter.reject.raw_hash for letter in ended if letter.reject.raw_hash and run.id in letter.redriven_by}

    def _delivered(self, run: Run) -> datetime:
        taken = [rest.delivered_at for rest in self._memory.lines.values() if (rest.id, run.id) in self._memory.lines_taken]
        taken += [letter.delivered_at for letter in self._memory.dead_letters if run.id in letter.redriven_by]
        return min([*taken, run.window.start if run.window is not None else run.created_at])

    def _letter(self, run: Run, shard: Shard, reject: Reject) -> DeadLetter:
        now = self._memory.clock.now()
        number = max((letter.id for letter in self._memory.dead_letters), default=0) + 1
        return DeadLetter(
            id=number,
            sync=run.sync,
            run=run.id,
            shard=shard.key,
            reject=reject,
            transformer_version=shard.transformer_version or run.transformer_version,
            attempts=1,
            status=DeadLetterStatus.OPEN,
            first_seen=now,
            last_seen=now,
            delivered_at=self._delivered(run),
        )

    def _note_lines(self, run: Run, shard: Shard, artifact: str, left: list[tuple[int, Reject]]) -> None:
        def place(entry: tuple[int, Reject]) -> tuple[str, str]:
            return (str(entry[1].cause), entry[1].address.artifact)

        for _, entries in groupby(sorted(left, key=place), key=place):
            lines = list(entries)
            number = max(self._memory.lines, default=0) + 1
            self._memory.lines[number] = DeadLetterLines(
                id=number,
                sync=run.sync,
                cause=lines[0][1].cause,
                message=min(reject.message for _, reject in lines),
                run=run.id,
                shard=shard.key,
                artifact=artifact,
                raw_artifact=lines[0][1].address.artifact,
                lines=spans(line for line, _ in lines),
                status=DeadLetterStatus.OPEN,
                delivered_at=self._delivered(run),
                seen_at=self._memory.clock.now(),
            )

    def _take_out(self, rest: DeadLetterLines, lines: set[int]) -> None:
        left = spans(line for start, end in rest.lines for line in range(start, end) if line not in lines)
        if left:
            self._memory.lines[rest.id] = rest.model_copy(update={"lines": left})
        else:
            del self._memory.lines[rest.id]

    def _moves(self, run: Run, rest: DeadLetterLines, one: Seen) -> bool:
        if run.mode is not Mode.REDRIVE and self._may_end(run, rest.run):
            return True
        is_taken = (rest.id, run.id) in self._memory.lines_taken or rest.run == run.id
        return one.line is not None and (is_taken or rest.delivered_at <= self._delivered(run))

    def _take_back(self, run: Run, one: Seen) -> None:
        own = [letter for letter in self._memory.dead_letters if letter.run == run.id and letter.attempts == 1]
        for letter in [letter for letter in own if _is_open(letter, run.sync) and letter.reject.address == one.address]:
            self._memory.dead_letters.remove(letter)
        for index, letter in enumerate(self._memory.dead_letters):
            if letter.reject.address == one.address and letter.status is DeadLetterStatus.OPEN:
                gone = {"status": DeadLetterStatus.DISCARDED, "ended_at": self._memory.clock.now()}
                self._memory.dead_letters[index] = letter.model_copy(update=gone)
        for rest in list(self._memory.lines.values()):
            if rest.artifact == one.artifact and rest.status is DeadLetterStatus.OPEN and one.line is not None:
                self._take_out(rest, {one.line})

    def _end(self, run: Run, is_meant: Any, **facts: Any) -> int:
        ended = 0
        with self._memory.lock:
            for index, letter in enumerate(self._memory.dead_letters):
                if _is_open(letter, run.sync) and is_meant(letter):
                    closed = {"status": DeadLetterStatus.CLOSED, "ended_by": run.id, "ended_at": self._memory.clock.now()}
                    self._memory.dead_letters[index] = letter.model_copy(update={**closed, **facts})
                    ended += 1
        return ended

    def _own(self, run: RunId, kind: ArtifactKind) -> set[str]:
        return {pointer.key for ref, pointer in self._memory.pointers.items() if ref.run == run and ref.kind is kind}

    def _open(self, sync: str, cause: Cause) -> list[DeadLetter]:
        return [letter for letter in self._memory.dead_letters if _is_open(letter, sync) and letter.reject.cause == cause]

    def _index(self, sync: str, reject: Reject) -> int | None:
        """Return where the letter of an object stands: one that was discarded, if the bytes are the same, else the open one."""
        found = [
            (letter.status is DeadLetterStatus.OPEN, index)
            for index, letter in enumerate(self._memory.dead_letters)
            if letter.sync == sync and letter.reject.identity == reject.identity and _counts(letter, reject)
        ]
        return min(found)[1] if found else None


def spans(lines: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return lines as the spans that they are."""
    found: list[tuple[int, int]] = []
    for line in sorted(lines):
        if found and found[-1][1] == line:
            found[-1] = (found[-1][0], line + 1)
        else:
            found.append((line, line + 1))
    return tuple(found)


def _counts(letter: DeadLetter, reject: Reject) -> bool:
    if letter.status is DeadLetterStatus.DISCARDED:
        return letter.reject.raw_hash is not None and letter.reject.raw_hash == reject.raw_hash
    return letter.status is DeadLetterStatus.OPEN


def _is_of_its_bytes(letter: DeadLetter, reject: Reject) -> bool:
    """Whether nobody could name the bytes of a letter, which are those of a reject."""
    return letter.reject.key is None and letter.reject.raw_hash is not None and letter.reject.raw_hash == reject.raw_hash


def _is_named(run: Run, letter: DeadLetter, reject: Reject) -> bool:
    """Whether a redrive tells the key of an open letter without one."""
    return run.id in letter.redriven_by and _is_open(letter, run.sync) and _is_of_its_bytes(letter, reject)


def _is_open(letter: DeadLetter, sync: str) -> bool:
    return letter.sync == sync and letter.status is DeadLetterStatus.OPEN
