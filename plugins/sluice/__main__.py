"""The `sluice` command: the one place where the command line meets Airflow's own connections."""

import os
import sys
import threading
from contextlib import suppress

from sluice.ports import Connections


def airflow_connections() -> Connections:
    """Return Airflow's own lookup. Importing Airflow takes seconds: it is left until the environment has no answer."""
    from sluice.airflow_glue.connections import AirflowConnections

    return AirflowConnections()


def main() -> None:
    """Run the command line and leave with its exit code."""
    from sluice.cli.app import run

    code = run(sys.argv[1:], airflow_connections)
    if _is_waited_for():
        # Whoever was interrupted, or gave a supplier up, has left a request behind, or the pause before it is repeated. Python
        # would wait for that, which may take hours, and what comes of it nobody needs. The run is ended in the state store by
        # now, and all that was opened is closed.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _is_waited_for() -> bool:
    """Whether Python's end would wait for other threads."""
    return any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())


if __name__ == "__main__":
    main()
