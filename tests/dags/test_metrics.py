"""Metrics of a real DagRun, as Airflow's own StatsD and OpenTelemetry clients send them off."""

import atexit
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from sluice.airflow_glue.metrics import AirflowMetrics
from sluice.model import metric
from tests.dags.driving import DrivenAirflow
from tests.support.local_server import Conversation, LocalServer

DAG = "sluice_hotels"
END = b"that is all"
PACKET = re.compile(r"airflow\.sluice\.(?P<name>\w+)(?P<labels>(,\w+=[^,:]+)*):(?P<value>[\d.]+)\|(?P<kind>c|g|ms)")
KINDS = {"c": metric.MetricKind.COUNT, "g": metric.MetricKind.GAUGE, "ms": metric.MetricKind.DURATION}
TABLE = {one.name: one for one in metric.METRICS}


class Packets:
    """What a StatsD server gets."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self._got: list[bytes] = []
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self) -> None:
        while (packet := self.socket.recv(65_536)) != END:
            self._got.append(packet)

    def all(self) -> list[str]:
        """Return all packets that were sent up to now."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(END, ("127.0.0.1", self.port))
        self._thread.join()
        self.socket.close()
        return [packet.decode() for packet in self._got]


class Collector(LocalServer):
    """What an OpenTelemetry collector gets."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        super().__init__(_Export)

    def points(self, name: str) -> list[Any]:
        """Return the data points of a metric's histogram."""
        scopes = [scope for one in self.got for resource in one.resource_metrics for scope in resource.scope_metrics]
        found = [told for scope in scopes for told in scope.metrics if told.name == name]
        return [point for told in found for point in told.exponential_histogram.data_points]


class _Export(Conversation):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(ExportMetricsServiceRequest.FromString(body))
        self.say(200, b"")


@pytest.fixture
def watchers(airflow_home: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Packets, Collector]]:
    """A StatsD server and a collector, to both of which this Airflow tells its metrics."""
    from airflow.sdk._shared.observability.metrics import otel_logger
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics.otel_logger import get_otel_logger
    from airflow.sdk.observability.metrics.statsd_logger import get_statsd_logger
    from opentelemetry import metrics

    packets, collector = Packets(), Collector()
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    for name, value in {
        "AIRFLOW__METRICS__STATSD_PORT": str(packets.port),
        "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}/v1/metrics",
    }.items():
        monkeypatch.setenv(name, value)
    clients = [get_statsd_logger(), get_otel_logger()]

    class Both:
        """Tells either."""

        def __getattr__(self, how: str) -> Any:
            return lambda *told, **labels: [getattr(client, how)(*told, **labels) for client in clients][-1]

    stats.initialize(factory=Both, export_legacy_names=False)
    yield packets, collector
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)
    metrics.get_meter_provider().shutdown()  # type: ignore[attr-defined]
    atexit.unregister(otel_logger.flush_otel_metrics)
    collector.shutdown()
    collector.server_close()


def test_what_a_run_tells(airflow: DrivenAirflow, watchers: tuple[Packets, Collector]) -> None:
    """Only what the table declares, with the labels it declares; and durations become histograms, step by step."""
    from opentelemetry import metrics

    packets, collector = watchers
    run = airflow.trigger(DAG)
    assert set(airflow.drive(DAG, run).values()) == {"success"}
    metrics.get_meter_provider().force_flush()  # type: ignore[attr-defined]
    told = [packet for packet in packets.all() if packet.startswith("airflow.sluice.")]
    steps: Counter[str] = Counter()
    for packet in told:
        found = PACKET.fullmatch(packet)
        assert found is not None, packet
        labels = dict(label.split("=") for label in found["labels"].split(",") if label)
        assert TABLE[found["name"]].misuse(KINDS[found["kind"]], labels) is None
        if found["name"] == "step_duration":
            assert (labels["stage"], labels["outcome"]) == ("hotel-content", "finished")
            steps[labels["step"]] += 1
    assert steps == {step: 2 if step in ("fetch", "transform") else 1 for step in metric.STEP_DURATION.labels["step"]}
    created = airflow.xcom(DAG, run, "publish")["counts"]["created"]
    assert f"airflow.sluice.objects_published,stage=hotel-content,outcome=created:{created}|c" in told
    points = collector.points("airflow.sluice.step_duration")
    assert {tuple(sorted(one.value.string_value for one in point.attributes)): point.count for point in points} == {
        tuple(sorted(("hotel-content", step, "finished"))): number for step, number in steps.items()
    }


def test_a_backend_that_fails_fails_no_step(airflow_home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was told is dropped."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats

    class Broken:
        """Takes nothing."""

        def incr(self, *_: object, **__: object) -> None:
            raise OSError("no such socket")

    stats.initialize(factory=Broken, export_legacy_names=False)
    AirflowMetrics().count(metric.PROGRESS_DROPPED)
    stats.initialize(factory=NoStatsLogger, export_legacy_names=True)
