"""Who may see and do what, as FastAPI dependencies; whoever mounts the pages brings them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Access:
    """Dependencies. Those that demand something refuse by raising an HTTP error."""

    authenticated: Callable[..., Any]
    """Demands a login; applied to every route."""
    user: Callable[..., str]
    """Returns the user's name, as the audit trail has it."""
    user_id: Callable[..., str]
    """Returns the id by which `approvers` of a sync name the user."""
    readable_dags: Callable[..., set[str]]
    """Returns the ids of the DAGs of syncs whose runs the user may read."""
    may_read_dag: Callable[..., Any]
    """Demands that the user may read runs of the DAG in the path parameter `dag_id`."""
    may_change_dag: Callable[..., Any]
    """Demands that the user may start and change runs of that DAG."""
    can_change_dag: Callable[..., bool]
    """Returns whether `may_change_dag` would let the user pass: a page offers nobody what he would be refused."""
