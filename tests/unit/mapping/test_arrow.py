"""Whether Arrow knows pandas: not before somebody else's code is at work, and then as ever."""

import subprocess
import sys

_LOOK = """
import sys
import pyarrow as pa
from sluice.adapters.targets.arrow_copy import copy_in, hex_column
from sluice.mapping.arrow import bring_in_pandas
from sluice.mapping.mapper import Mapper
from sluice.mapping.spelling import spelled
from sluice.mapping.utf8 import is_utf8

assert is_utf8("ž".encode())
assert spelled(pa.array([["a", None], None], pa.list_(pa.string()))).to_pylist() == ['{"a",NULL}', None]
assert hex_column(pa.chunked_array([pa.array([b"ab", None], pa.binary(2))])).to_pylist() == [r"\\x6162", None]
assert "pandas" not in sys.modules

bring_in_pandas()
import pandas as pd
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.array([1, pd.NA], from_pandas=True).null_count == 1
"""


def test_arrays_are_made_without_pandas_until_it_is_brought_in() -> None:
    """A task that has no use for it does not wait for it; the team's code finds that a missing value is null to Arrow."""
    done = subprocess.run([sys.executable, "-c", _LOOK], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
