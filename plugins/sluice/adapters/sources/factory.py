"""The declaration of a source in, the source itself out; what a kind needs is imported when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from sluice.guard.restraint import Restraint
from sluice.model.auth import AuthSpec
from sluice.model.source import SourceSpec
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.ports import AccessTokenStore, Clock, ConnectionInfo, Connections, Source

if TYPE_CHECKING:
    from sluice.adapters.sources.transport.auth import Auth
    from sluice.adapters.sources.transport.endpoint import Endpoint


@dataclass(frozen=True)
class Sources:
    """Opens sources with the connections of this process."""

    connections: Connections
    restraint: Callable[[str, str, StagePolicy], Restraint]
    """By host, stage and its policy: what holds requests back."""
    tokens: AccessTokenStore
    clock: Clock
    include: Path
    """Where a team keeps code of its own."""

    def open(self, source: SourceSpec, stage: str, policy: StagePolicy, sync: SyncSpec | None = None) -> Source:
        """Return the source; nothing is asked of the supplier yet. Raises `ConnectionInvalid` or `SpecInvalid`.

        `sync` is the one whose objects its records are; None: they are something else, such as a list of shards.
        """
        match source.kind:
            case "rest":
                from sluice.adapters.sources.rest.source import RestSource

                info = self.connections.get(source.connection)
                proof = self._proof(source.auth, info, policy)
                return RestSource(source, info, policy, lambda host: self.restraint(host, stage, policy), proof)
            case "sql":
                from sluice.adapters.sources.sql.source import SqlSource

                info = self.connections.get(source.connection)
                return SqlSource(source, info, policy, lambda host: self.restraint(host, stage, policy), sync)
            case "code":
                from sluice.adapters.sources.code_source import CodeSource

                given = self.connections.get(source.connection) if source.connection else None
                return CodeSource(source, given, policy, lambda host: self.restraint(host, stage, policy), self.include)
            case "files":
                from sluice.adapters.sources.files.source import FilesSource

                info = self.connections.get(source.connection)
                proof = self._proof(source.auth, info, policy)
                return FilesSource(source, info, policy, lambda host: self.restraint(host, stage, policy), proof)
            case _:
                assert_never(source)

    def _proof(self, auth: AuthSpec | None, info: ConnectionInfo, policy: StagePolicy) -> "Callable[[Endpoint], Auth]":
        from sluice.adapters.sources.transport.proof import Proofs

        proofs = Proofs(self.tokens, self.clock, self.include)
        return lambda endpoint: proofs.open(auth, info, endpoint, policy)
