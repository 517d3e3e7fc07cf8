"""Who may see what, as FastAPI dependencies; whoever mounts the pages brings them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Access:
    """Three dependencies. Each refuses by raising an HTTP error."""

    authenticated: Callable[..., Any]
    """Demands a login; applied to every route."""
    may_read_dag: Callable[..., Any]
    """Demands that the user may read runs of the DAG in the path parameter `dag_id`."""
    readable_dags: Callable[..., set[str]]
    """Returns the ids of the DAGs whose runs the user may read."""
