"""Each check of an installation: what it finds, and what it says is to be done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sluice.errors import AirflowUnavailable, ArtifactCorrupt, ConnectionInvalid, SpecInvalid, StateUnavailable
from sluice.model.artifact import Pointer
from sluice.model.auth import BearerAuth
from sluice.model.finding import Finding, Standing
from sluice.model.loss_window import Writing
from sluice.model.spec import SyncSpec
from sluice.model.stage import StagePolicy
from sluice.model.state_class import StateClass
from sluice.ports import ConnectionInfo
from sluice.upkeep.examination import Examined, examine
from tests.support.market import market_spec
from tests.unit.fakes.artifact_store import MemoryArtifactStore
from tests.unit.fakes.clock import FakeClock
from tests.unit.flow.workshop import sync_spec


@dataclass
class Files:
    """The files of a team with one sync."""

    problems: list[str] = field(default_factory=list)
    policies: dict[str, StagePolicy] = field(default_factory=lambda: {"hotel-content": StagePolicy()})
    spec: SyncSpec | None = field(default_factory=sync_spec)

    def names(self) -> list[str]:
        """There is one."""
        return ["hotels"]

    def stages(self) -> list[str]:
        """Return their names."""
        return sorted(self.policies)

    def sync(self, _: str) -> SyncSpec:
        """Return it, if it is valid."""
        if self.spec is None:
            raise SpecInvalid(self.problems)
        return self.spec

    def policy(self, stage: str) -> StagePolicy:
        """Return it."""
        return self.policies[stage]

    def check(self) -> list[str]:
        """Return what is wrong."""
        return self.problems


class Known:
    """Knows every connection."""

    def get(self, conn_id: str) -> ConnectionInfo:
        """Return it."""
        return ConnectionInfo(conn_id, "http", "shop.example", None, None, None, None, {})


@dataclass
class Probe:
    """A database as a test wants it."""

    clock: FakeClock
    ahead: timedelta = timedelta(0)
    takes: timedelta = timedelta(0)
    present: str | None = "0002"
    error: Exception | None = None

    def now(self) -> datetime:
        """Return its time, half way through the question."""
        if self.error:
            raise self.error
        self.clock.move(self.takes / 2)
        now = self.clock.now() + self.ahead
        self.clock.move(self.takes / 2)
        return now

    def revision(self) -> tuple[str | None, str]:
        """Return where it stands."""
        return self.present, "0002"


CLOCK = FakeClock()
WRITING = {state_class: Writing(retries=0, timeout=timedelta(seconds=1)) for state_class in StateClass}
HEALTHY = Examined(
    clock=CLOCK,
    specs=Files(),
    connections=Known(),
    state=lambda: Probe(CLOCK),
    target=lambda _: Probe(CLOCK),
    artifacts=MemoryArtifactStore,
    cold=lambda: None,
    warehouse=lambda _: CLOCK.now(),
    pools=lambda: ["sluice_hotel_content"],
    unable=lambda _: [],
    writing=WRITING,
)


def found(check: str, subject: str, **changes: Any) -> Finding:
    """Return the one finding of that check on that subject."""
    (finding,) = [one for one in examine(replace(HEALTHY, **changes)) if (one.check, one.subject) == (check, subject)]
    return finding


def test_a_healthy_installation_has_nothing_to_mend() -> None:
    """Every check is made, and none finds anything."""
    findings = list(examine(HEALTHY))
    assert {(one.check, one.subject, one.standing, one.mend) for one in findings} == {
        ("specs", "include", Standing.OK, None),
        *(
            (check, conn_id, Standing.OK, None)
            for check in ("database", "schema", "clock")
            for conn_id in ("sluice_state", "sluice_target")
        ),
        ("artifacts", "sluice_artifacts", Standing.OK, None),
        ("supplier", "shop", Standing.OK, None),
        ("idempotency", "hotel-content", Standing.OK, None),
        ("pool", "sluice_hotel_content", Standing.OK, None),
    }


def refuse(error: Exception) -> Callable[..., Any]:
    """Return what raises the error when it is used."""

    def use(*_: object) -> Any:
        raise error

    return use


@pytest.mark.parametrize(
    ("check", "subject", "changes"),
    [
        ("database", "sluice_state", {"state": refuse(ConnectionInvalid("it is not defined"))}),
        ("database", "sluice_state", {"state": lambda: Probe(CLOCK, error=StateUnavailable("it is not defined"))}),
        ("database", "sluice_target", {"target": refuse(ConnectionInvalid("it is not defined"))}),
        ("artifacts", "sluice_artifacts", {"artifacts": refuse(ConnectionInvalid("it is not defined"))}),
    ],
)
def test_what_cannot_be_reached_is_named_with_its_mend(check: str, subject: str, changes: dict[str, Any]) -> None:
    """One that is down hides no other."""
    finding = found(check, subject, **changes)
    assert (finding.standing, finding.said) == (Standing.FAILED, "it is not defined")
    assert subject in str(finding.mend)
    others = [one for one in examine(replace(HEALTHY, **changes)) if one.standing is not Standing.OK]
    assert others == [finding]


@pytest.mark.parametrize(
    ("present", "said", "mend"),
    [
        (None, "there is no sluice_state yet", "sluice db upgrade"),
        ("0001", "at revision 0001; this Sluice needs 0002", "sluice db upgrade"),
        ("0003", "at revision 0003", "upgrade this Sluice"),
    ],
)
def test_a_schema_of_another_release(present: str | None, said: str, mend: str) -> None:
    """Whichever is older has to be upgraded."""
    finding = found("schema", "sluice_state", state=lambda: Probe(CLOCK, present=present))
    assert finding.standing is Standing.FAILED
    assert said in finding.said
    assert mend in str(finding.mend)


@pytest.mark.parametrize(
    ("ahead", "takes", "standing"),
    [(9, 0, Standing.OK), (-9, 0, Standing.OK), (11, 0, Standing.WARNING), (-11, 0, Standing.WARNING), (11, 4, Standing.OK)],
)
def test_clocks_that_disagree_are_a_warning(ahead: int, takes: int, standing: Standing) -> None:
    """What the question itself took is no skew."""
    probe = Probe(CLOCK, ahead=timedelta(seconds=ahead), takes=timedelta(seconds=takes))
    finding = found("clock", "sluice_state", state=lambda: probe)
    assert finding.standing is standing
    assert f"{abs(ahead)}.0 s {'ahead of' if ahead > 0 else 'behind'}" in finding.said


def test_every_problem_of_a_spec_is_a_finding() -> None:
    """A sync that cannot be read is told line by line; its stage's pool is nobody's business then."""
    files = Files(problems=["include/syncs/hotels.yaml:3: stage: no stage 'x'"], spec=None)
    finding = found("specs", "include/syncs/hotels.yaml", specs=files)
    assert (finding.standing, finding.said) == (Standing.FAILED, files.problems[0])
    assert [one for one in examine(replace(HEALTHY, specs=files)) if one.check == "pool"] == []


@pytest.mark.parametrize(("ttl", "standing"), [("20h", Standing.OK), ("1h", Standing.FAILED)])
def test_both_sides_of_the_idempotency_rule_are_printed(ttl: str, standing: Standing) -> None:
    """Results of calls are kept at least as long as a run may repeat them."""
    policy = StagePolicy.model_validate({"idempotency_ttl": ttl})
    finding = found("idempotency", "hotel-content", specs=Files(policies={"hotel-content": policy}))
    assert finding.standing is standing
    assert finding.said == f"idempotency_ttl {ttl}, longest run 18h + retry window 1m = 1081m"


class Forgetful(MemoryArtifactStore):
    """Gives other bytes than it was given."""

    def get(self, _: Pointer) -> bytes:
        """Be damaged."""
        raise ArtifactCorrupt("artifact is missing")


def test_an_object_store_that_forgets_is_found_out_and_left_clean() -> None:
    """The probe object is removed whatever became of it."""
    store = Forgetful()
    finding = found("artifacts", "sluice_artifacts", artifacts=lambda: store)
    assert (finding.standing, finding.said) == (Standing.FAILED, "artifact is missing")
    assert store.objects == {}


def no_pools() -> Sequence[str]:
    """Airflow is down."""
    raise AirflowUnavailable("cannot be reached")


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        (None, []),
        (lambda: ["default_pool"], [("sluice_hotel_content", Standing.FAILED)]),
        (no_pools, [("Airflow", Standing.WARNING)]),
    ],
)
def test_pools_are_looked_at_where_there_is_an_airflow(pools: Any, expected: list[Any]) -> None:
    """Without one there is nothing to say; one that is down is no failure of the installation."""
    findings = [one for one in examine(replace(HEALTHY, pools=pools)) if one.check == "pool"]
    assert [(one.subject, one.standing) for one in findings] == expected
    assert all(one.mend for one in findings)


def test_loss_windows_are_told_for_each_stage() -> None:
    """Two stages that close their chunks at different ages may lose differently much."""
    quick = StagePolicy.model_validate({"chunk_age": "1s"})
    windows = replace(HEALTHY, specs=Files(policies={"quick": quick, "slow": StagePolicy()})).loss_windows()
    spans = {stage: {w.state_class: w.span.total_seconds() for w in of_stage} for stage, of_stage in windows.items()}
    assert spans == {
        "quick": {StateClass.CONTROL: 0, StateClass.TASK: 2, StateClass.SESSION: 3},
        "slow": {StateClass.CONTROL: 0, StateClass.TASK: 11, StateClass.SESSION: 3},
    }


def test_a_connection_without_what_proves_who_asks() -> None:
    """What a sync's way needs and the connection has not is told before a run asks for it."""
    spec = market_spec()
    proven = spec.model_copy(update={"source": spec.source.model_copy(update={"auth": BearerAuth(kind="bearer")})})
    listed = {"kind": "listed", "name": "city", "value": "id", "source": proven.source.model_dump(mode="json")}
    assert found("supplier", "supplier", specs=Files(spec=market_spec(shards=listed))).standing is Standing.FAILED
    finding = found("supplier", "supplier", specs=Files(spec=proven))
    assert finding.standing is Standing.FAILED
    assert finding.said == "lacks a password for source.auth of kind bearer of the sync market"
    assert finding.mend == "put it into the connection supplier, or correct source.auth of market"


def test_a_database_of_a_supplier_is_asked_whether_it_lets_us_in() -> None:
    """Of its records or of its shards; a refusal is told in its own words."""
    rows = {"kind": "sql", "connection": "warehouse", "table": "stalls", "key": ["id"]}
    listed = {"kind": "listed", "name": "city", "value": "id", "source": rows}
    for spec in (market_spec(source=rows), market_spec(shards=listed)):
        assert found("supplier", "warehouse", specs=Files(spec=spec)).said == "reachable at shop.example"

        def refuse(conn_id: str) -> datetime:
            raise ConnectionInvalid(f"{conn_id} lets nobody in")

        finding = found("supplier", "warehouse", specs=Files(spec=spec), warehouse=refuse)
        assert (finding.standing, finding.said) == (Standing.FAILED, "warehouse lets nobody in")
