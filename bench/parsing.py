"""What it costs to parse the DAG files of 50 syncs, beside a bare `import airflow.sdk`: Airflow does it every few seconds.

    .venv/bin/python bench/parsing.py [SYNCS]

Each line is the median of five processes of their own: seconds of CPU, beyond what the bare import takes. A task's attempt
parses one file, the DAG processor all of them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

PROJECT: Final = Path(__file__).parents[1]
_ROUNDS: Final = 5
_PROBE: Final = """
import runpy, sys, time
began = time.process_time()
import airflow.sdk
imported = time.process_time()
for file in sys.argv[1:]:
    runpy.run_path(file)
print(imported - began, time.process_time() - imported)
"""


def main() -> None:
    """Write the syncs, parse them, print what it took."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
    try:
        files = write(folder, number)
        bare = [parse(folder, [])[0] for _ in range(_ROUNDS)]
        print(f"bare import of airflow.sdk          {median(bare):6.2f} s")
        for what, some in (("one DAG file", files[:1]), (f"{number} DAG files", files)):
            print(f"{what:35} {median(parse(folder, some)[1] for _ in range(_ROUNDS)):6.2f} s more")
    finally:
        shutil.rmtree(folder)


def write(folder: Path, number: int) -> list[Path]:
    """Write so many syncs like the demo's, each with its DAG file; return these."""
    shutil.copytree(PROJECT / "include", folder / "include")
    (folder / "dags").mkdir()
    spec, dag = (PROJECT / "include/syncs/hotels.yaml").read_text(), (PROJECT / "dags/hotels.py").read_text()
    files = []
    for place in range(number):
        name = f"hotels_{place}"
        (folder / f"include/syncs/{name}.yaml").write_text(spec.replace("sync: hotels", f"sync: {name}", 1))
        files.append(folder / f"dags/{name}.py")
        files[-1].write_text(dag.replace("hotels", name))
    return files


def parse(folder: Path, files: list[Path]) -> tuple[float, float]:
    """Return the seconds of CPU that the bare import took, and parsing these files after it."""
    environ = {
        **os.environ,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(PROJECT / "plugins"),
        "SLUICE_INCLUDE": str(folder / "include"),
    }
    command = [sys.executable, "-c", _PROBE, *files]
    output = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    imported, parsed = map(float, output.split())
    return imported, parsed


if __name__ == "__main__":
    main()
