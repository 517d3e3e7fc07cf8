"""Faults as they are injected and survived go in; the line that sums up the session comes out."""

from collections import Counter


class Tally:
    """Counts, by kind, faults that have really happened, and those after which all was right again."""

    def __init__(self) -> None:
        self.injected: Counter[str] = Counter()
        self.survived: Counter[str] = Counter()

    def add(self, injected: list[str], *, survived: bool) -> None:
        """Count the faults of one experiment; all of them are survived, or none."""
        self.injected.update(injected)
        if survived:
            self.survived.update(injected)

    def lines(self) -> list[str]:
        """Return the summary."""
        kinds = [f"  {number:5}  {kind}" for kind, number in sorted(self.injected.items())]
        return [f"{self.injected.total()} faults injected, {self.survived.total()} survived", *kinds]
