"""Who is asked what may be the matter with dead letters."""

from collections.abc import Callable, Iterable

from sluice.model.triage import Proposal, Ward

Triage = Callable[[Ward], Iterable[Proposal]]
"""Proposes what may be the matter with a group of dead letters, the likelier first. It changes nothing."""
