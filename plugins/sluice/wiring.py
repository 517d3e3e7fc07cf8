"""The one composition root: settings and connections in, `Services` out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache

from sluice.adapters import postgres
from sluice.adapters.airflow_gates import AirflowGates
from sluice.adapters.airflow_runs import AirflowDagRuns
from sluice.adapters.airflow_triggers import AirflowTriggers
from sluice.adapters.artifacts import bucket
from sluice.adapters.artifacts.cache import LocalCache
from sluice.adapters.artifacts.cached import CachedArtifactStore
from sluice.adapters.artifacts.codec import ZstdChunkCodec
from sluice.adapters.artifacts.cold import cold_store
from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.adapters.clock import SystemClock
from sluice.adapters.ledger.store import PostgresLedger
from sluice.adapters.metrics import LoggedMetrics
from sluice.adapters.notifiers import wrong_notifiers
from sluice.adapters.postgres import Database
from sluice.adapters.probes import PostgresProbe, time_of_warehouse
from sluice.adapters.sources.factory import Sources
from sluice.adapters.sources.finder import SourceShardFinder
from sluice.adapters.spec_files import SpecFiles
from sluice.adapters.state import (
    PostgresAccessTokenStore,
    PostgresAlertStore,
    PostgresAuditStore,
    PostgresBreakerStore,
    PostgresByHandStore,
    PostgresCallStore,
    PostgresDeadLetterStore,
    PostgresEventReader,
    PostgresGarbageStore,
    PostgresLetterDesk,
    PostgresOverviewStore,
    PostgresPointerStore,
    PostgresProgressStore,
    PostgresRateStore,
    PostgresRebuildStore,
    PostgresRedoStore,
    PostgresRedriveStore,
    PostgresReviewStore,
    PostgresRunStore,
    PostgresShardStore,
    PostgresWatermarkStore,
)
from sluice.adapters.state.database import StateDatabase
from sluice.adapters.transforms import team_function
from sluice.adapters.triage import triage_of
from sluice.errors import SpecInvalid, StateUnavailable, TargetUnavailable
from sluice.guard.breaker import SharedBreaker
from sluice.guard.pacing import Pacing
from sluice.guard.restraint import Restraint
from sluice.model.connections import ARTIFACTS, STATE
from sluice.model.spec import SyncSpec, WebhookSpec
from sluice.model.stage import StagePolicy
from sluice.model.state_class import StateClass
from sluice.ports import Connections, Metrics, Services, Source, Target, Webhook
from sluice.settings import Settings
from sluice.upkeep.examination import Examined


def examined(settings: Settings, connections: Connections, pools: Callable[[], Sequence[str]] | None = None) -> Examined:
    """Return the installation as it can be looked at; nothing is looked up or connected to before its check."""
    return Examined(
        clock=SystemClock(),
        specs=SpecFiles(settings.include),
        connections=connections,
        state=lambda: PostgresProbe(connections.get(STATE), "sluice_state"),
        target=lambda conn_id: PostgresProbe(connections.get(conn_id), "sluice_ledger"),
        artifacts=lambda: S3ArtifactStore(connections.get(ARTIFACTS)),
        cold=lambda: cold_store(connections.get(ARTIFACTS)),
        warehouse=lambda conn_id: time_of_warehouse(connections.get(conn_id)),
        pools=pools,
        unable=lambda policy: [error.message for _, error in wrong_notifiers(policy, settings.include)],
        writing={
            StateClass.CONTROL: postgres.WRITING,
            StateClass.TASK: bucket.WRITING,
            StateClass.SESSION: postgres.WRITING,
        },
    )


@contextmanager
def open_services(
    settings: Settings, connections: Connections, metrics: Metrics | None = None, airflow_url: str | None = None
) -> Iterator[Services]:
    """Build the services of this process; what they opened is closed when the context ends.

    Without `metrics`, counts go to the log; without `airflow_url`, packets lead to no DagRun. Nothing is connected to before it
    is used. Raises `ConnectionInvalid` if a connection is not defined.
    """
    metrics = metrics or LoggedMetrics()
    with ExitStack() as stack:

        @cache
        def target_database(conn_id: str) -> Database:
            database = Database(connections.get(conn_id), TargetUnavailable)
            stack.callback(database.close)
            return database

        @cache
        def restraint(host: str, stage: str, policy: StagePolicy) -> Restraint:
            return Restraint(
                SharedBreaker(breakers, clock, metrics, host=host, stage=stage, policy=policy),
                Pacing(rates, clock, host=host, stage=stage, policy=policy),
            )

        def source(spec: SyncSpec, policy: StagePolicy) -> Source:
            return sources.open(spec.source, spec.stage, policy, spec)

        def target(spec: SyncSpec) -> Target:
            from sluice.adapters.targets.postgres import PostgresTarget

            return PostgresTarget(target_database(spec.target.connection), spec)

        def webhook(hook: WebhookSpec, policy: StagePolicy) -> Webhook:
            from sluice.adapters.webhooks import HttpWebhook

            return HttpWebhook(hook, connections.get(hook.connection), policy)

        state = Database(connections.get(STATE), StateUnavailable)
        stack.callback(state.close)
        control_state = StateDatabase(state, StateClass.CONTROL, metrics)
        task_state = StateDatabase(state, StateClass.TASK, metrics)
        session_state = StateDatabase(state, StateClass.SESSION, metrics)
        breakers = PostgresBreakerStore(control_state)
        rates = PostgresRateStore(control_state)
        clock = SystemClock()
        sources = Sources(connections, restraint, PostgresAccessTokenStore(control_state), clock, settings.include)
        specs = SpecFiles(settings.include)

        @cache
        def cache_of(sync: str) -> LocalCache | None:
            with suppress(SpecInvalid):  # without its YAML no stage says what to keep of a sync
                stage = specs.sync(sync).stage
                return LocalCache(settings.cache, stage, specs.policy(stage).local_cache, clock)
            return None

        yield Services(
            clock=clock,
            metrics=metrics,
            runs=PostgresRunStore(task_state, metrics),
            shards=PostgresShardStore(task_state),
            pointers=PostgresPointerStore(task_state),
            redos=PostgresRedoStore(task_state),
            reviews=PostgresReviewStore(task_state),
            rebuilds=PostgresRebuildStore(task_state),
            dead_letters=PostgresDeadLetterStore(task_state),
            redrives=PostgresRedriveStore(task_state),
            letter_desk=PostgresLetterDesk(task_state),
            watermarks=PostgresWatermarkStore(task_state),
            by_hand=PostgresByHandStore(task_state),
            audit=PostgresAuditStore(task_state),
            garbage=PostgresGarbageStore(task_state),
            progress=PostgresProgressStore(session_state),
            events=PostgresEventReader(session_state),
            overview=PostgresOverviewStore(task_state),
            artifacts=CachedArtifactStore(S3ArtifactStore(connections.get(ARTIFACTS)), cache_of, metrics),
            cold=cold_store(connections.get(ARTIFACTS)),
            codec=ZstdChunkCodec(),
            source=source,
            shard_finder=lambda spec, policy: SourceShardFinder(spec, lambda lister: sources.open(lister, spec.stage, policy)),
            transform=lambda spec, shard: team_function(spec, shard, settings.include),
            triage=lambda spec: triage_of(spec, settings.include),
            ledger=lambda spec: PostgresLedger(target_database(spec.target.connection)),
            target=target,
            spec=specs.sync,
            suite=specs.suite,
            policy=specs.policy,
            calls=PostgresCallStore(control_state),
            webhook=webhook,
            alerts=PostgresAlertStore(task_state),
            gates=AirflowGates(connections),
            dag_runs=AirflowDagRuns(connections),
            triggers=AirflowTriggers(connections),
            airflow_url=airflow_url,
        )
