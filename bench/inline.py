"""`sluice run hotels --inline` over 50,000 records, first load and second run: records per CPU second, and peak memory.

    .venv/bin/python bench/inline.py [RECORDS]

CPU is the command's own, start-up included, and that of Postgres meanwhile; S3 and the supplier are not counted. Memory is the
command's peak. The supplier, Postgres and S3 run on this machine and are thrown away at the end.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import urllib3

from sluice.adapters.migrate import upgrade
from sluice.cli.local.postgres import PostgresServer
from sluice.cli.local.s3 import S3Server
from sluice.cli.local.services import as_variable
from sluice.cli.local.supplier import DemoSupplier
from sluice.ports import ConnectionInfo

PROJECT = Path(__file__).parents[1]
HOTELS = 488
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Set everything up, measure two runs, print a line for each."""
    copies = -(-int(sys.argv[1] if len(sys.argv) > 1 else "50000") // HOTELS)
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    folder.chmod(0o711)
    postgres, s3 = PostgresServer(folder / "postgres"), S3Server(folder / "s3", "bench")
    supplier = DemoSupplier(folder / "supplier", PROJECT / "include/demo/supplier.py")
    try:
        postgres.start()
        s3.start()
        supplier.start()
        postgres.ensure_database("bench")
        database = postgres.connection("sluice_state", "bench")
        upgrade(database, "sluice_state")
        upgrade(database, "sluice_ledger")
        urllib3.request("POST", f"{supplier.url}/_control", json={"copies": copies})
        known = (database, s3.connection("sluice_artifacts", "bench"), supplier.connection("demo_supplier"))
        environ = environment(*known) | {"SLUICE_CACHE": str(folder / "cache")}
        print(f"{copies * HOTELS:,} records of the demo supplier")
        measure("first load", environ, folder, copies * HOTELS)
        measure("second, full, nothing changed", environ, folder, copies * HOTELS, "--mode", "full")
    finally:
        supplier.stop()
        s3.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def environment(database: ConnectionInfo, artifacts: ConnectionInfo, supplier: ConnectionInfo) -> dict[str, str]:
    """Return the environment of the command: its connections."""
    known = {"sluice_state": database, "sluice_target": database, "sluice_artifacts": artifacts, "demo_supplier": supplier}
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return environ | {f"AIRFLOW_CONN_{conn_id.upper()}": as_variable(info) for conn_id, info in known.items()}


def measure(what: str, environ: dict[str, str], folder: Path, records: int, *options: str) -> None:
    """Run the command once and print what it took."""
    served, began = postgres_cpu(folder), time.monotonic()
    command = [sys.executable, "-m", "sluice", "run", "hotels", "--inline", "--json", *options]
    process = subprocess.Popen(command, cwd=PROJECT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read() if process.stdout else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{what}: exit code {process.returncode}: {output.decode()}")
    client = usage.ru_utime + usage.ru_stime
    server = postgres_cpu(folder) - served
    print(
        f"{what}: {records / (client + server):,.0f} records per CPU second "
        f"({client:.1f} s client + {server:.1f} s Postgres; {1e6 * (client + server) / records:.0f} µs a record), "
        f"{took:.1f} s, peak {usage.ru_maxrss / 1000:,.0f} MB"
    )


def postgres_cpu(folder: Path) -> float:
    """Return the CPU seconds that the server and its ended backends have used."""
    pid = int((folder / "postgres/data/postmaster.pid").read_text().split()[0])
    return sum(cpu_of(stat) for stat in Path("/proc").glob("[0-9]*/stat") if belongs(stat, pid))


def belongs(stat: Path, postmaster: int) -> bool:
    """Whether a process is the postmaster or a child of it."""
    try:
        fields = stat.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return postmaster in (int(stat.parent.name), int(fields[1]))


def cpu_of(stat: Path) -> float:
    """Return the CPU seconds of a process and of those children of it that have ended."""
    try:
        fields = stat.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS


if __name__ == "__main__":
    main()
