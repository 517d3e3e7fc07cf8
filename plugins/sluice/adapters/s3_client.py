"""An Airflow connection of type aws in; a client of S3, or of anything that speaks it, out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from sluice.errors import ConnectionInvalid, Retryable
from sluice.ports import ConnectionInfo

DEFAULT_REGION: Final = "us-east-1"


def s3_client(info: ConnectionInfo, *, attempts: int, connect_seconds: float, read_seconds: float) -> Any:
    """Return a client with the connection's login, `endpoint_url` and `region_name`; nothing is contacted yet."""
    from botocore.config import Config
    from botocore.handlers import convert_body_to_file_like_object
    from botocore.session import get_session

    config = Config(
        connect_timeout=connect_seconds,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": attempts},
        s3={"addressing_style": "path"},
        # Not every store knows the newer checksums.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    session = get_session()
    session.register_component("data_loader", _descriptions())
    try:
        client = session.create_client(
            "s3",
            endpoint_url=extra_text(info, "endpoint_url") or None,
            region_name=extra_text(info, "region_name") or DEFAULT_REGION,
            aws_access_key_id=info.login or None,
            aws_secret_access_key=info.password or None,
            config=config,
        )
    except ValueError as exc:
        raise ConnectionInvalid(
            f"connection {info.conn_id}: `endpoint_url` in the extra is no URL such as https://s3.example.com"
        ) from exc
    # Bytes would be sent as a file: after a wait for the store to say that it wants them, and in blocks of 16 kB.
    client.meta.events.unregister("before-parameter-build.s3.PutObject", convert_body_to_file_like_object)
    return client


@contextmanager
def store_errors(
    conn_id: str, where: str, *, names: str, unavailable: type[Retryable], told: Callable[[Any], Exception]
) -> Iterator[None]:
    """Turn what boto raises into Sluice's errors. Texts of the store are left out: they may repeat what was sent.

    `names` are those that were sent, `unavailable` is for a store out of reach, and `told` makes an error of its answer.
    """
    from botocore import exceptions as boto
    from urllib3.exceptions import HTTPError

    try:
        yield
    except boto.ClientError as exc:
        raise told(exc.response) from exc
    except (boto.NoCredentialsError, boto.PartialCredentialsError) as exc:
        raise ConnectionInvalid(
            f"connection {conn_id} lacks credentials: give the access key as login, the secret as password"
        ) from exc
    except (boto.ParamValidationError, boto.InvalidRegionError, boto.ProfileNotFound) as exc:
        raise ConnectionInvalid(f"connection {conn_id}: {names} is not a valid name") from exc
    except (boto.BotoCoreError, HTTPError, OSError) as exc:
        raise unavailable(
            f"the object store at {where} (connection {conn_id}) cannot be reached: {type(exc).__name__}"
        ) from exc


def extra_text(info: ConnectionInfo, name: str) -> str:
    """Return a text of the connection's extra; empty if there is none."""
    value = info.extra.get(name)
    if value is not None and not isinstance(value, str):
        raise ConnectionInvalid(f"connection {info.conn_id}: `{name}` in the extra must be text")
    return value or ""


@cache
def _descriptions() -> Any:
    """Return what keeps botocore's descriptions of S3, once read: to read them takes longer than ten requests."""
    from botocore.session import get_session

    return get_session().get_component("data_loader")
