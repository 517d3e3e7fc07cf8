"""The `sluice` command: the one place where the command line meets Airflow's own connections."""

import sys

from sluice.ports import Connections


def airflow_connections() -> Connections:
    """Return Airflow's own lookup. Importing Airflow takes seconds: it is left until the environment has no answer."""
    from sluice.airflow_glue.connections import AirflowConnections

    return AirflowConnections()


def main() -> None:
    """Run the command line and leave with its exit code."""
    from sluice.cli.app import run

    sys.exit(run(sys.argv[1:], airflow_connections))


if __name__ == "__main__":
    main()
