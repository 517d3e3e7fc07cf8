"""An object in; its open dead letter, and what may be done about it, out."""

from sluice.model.base import ObjectKey
from sluice.model.reject import DeadLetter, DeadLetterStatus
from sluice.ports import Services


def open_letters(services: Services, sync: str, key: ObjectKey) -> list[DeadLetter]:
    """Return the open letter of an object; it has one at most, and the newest of all."""
    newest = services.letter_desk.of_object(sync, key, 1)
    return [letter for letter in newest if letter.status is DeadLetterStatus.OPEN]


def letter_told(letter: DeadLetter) -> str:
    """Say what is wrong with what was delivered last, and how it is taken up again."""
    return (
        f"since {letter.first_seen:%Y-%m-%d %H:%M:%SZ} it cannot be taken in ({letter.attempts} times by now), letter "
        f"{letter.id}: {letter.reject.message}\nsluice dlq show {letter.id} shows it, "
        f"sluice dlq redrive {letter.sync} {letter.id} takes it up again"
    )
