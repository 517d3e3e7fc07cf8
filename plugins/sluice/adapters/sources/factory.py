"""The declaration of a source in, the source itself out; what a kind needs is imported when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass

from sluice.errors import SpecInvalid
from sluice.guard.restraint import Restraint
from sluice.model.source import SourceSpec
from sluice.model.stage import StagePolicy
from sluice.ports import Connections, Source


@dataclass(frozen=True)
class Sources:
    """Opens sources with the connections of this process."""

    connections: Connections
    restraint: Callable[[str, str, StagePolicy], Restraint]
    """By host, stage and its policy: what holds requests back."""

    def open(self, source: SourceSpec, stage: str, policy: StagePolicy) -> Source:
        """Return the source; nothing is asked of the supplier yet. Raises `ConnectionInvalid` or `SpecInvalid`."""
        match source.kind:
            case "rest":
                from sluice.adapters.sources.rest.source import RestSource

                info = self.connections.get(source.connection)
                return RestSource(source, info, policy, lambda host: self.restraint(host, stage, policy))
            case _:
                raise SpecInvalid([f"source.kind: {source.kind} is not built yet"])
