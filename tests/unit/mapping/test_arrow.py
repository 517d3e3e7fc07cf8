"""What Arrow brings along: pandas not before somebody else loads it, and then as ever; and no memory of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

_WITHOUT = r"""
import sys
import pyarrow as pa
from sluice.adapters.targets.arrow_copy import copy_in, hex_column
from sluice.mapping.mapper import Mapper
from sluice.mapping.spelling import spelled
from sluice.mapping.utf8 import is_utf8

assert is_utf8("ž".encode())
assert spelled(pa.array([["a", None], None], pa.list_(pa.string()))).to_pylist() == ['{"a",NULL}', None]
assert hex_column(pa.chunked_array([pa.array([b"ab", None], pa.binary(2))])).to_pylist() == [r"\x6162", None]
"""
_NONE = 'assert "pandas" not in sys.modules'
_LOADED = """
import decimal
import pandas as pd
assert type(pd.__loader__) is type(pd.__spec__.loader) is type(decimal.__loader__)
"""
_KNOWN = """
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.array([1, pd.NA], from_pandas=True).null_count == 1
"""
_BESIDE = """
import threading
sys.meta_path[0]._refused = threading.get_ident()
try:
    import pandas
except ModuleNotFoundError:
    beside = threading.Thread(target=__import__, args=["pandas"])
    beside.start()
    beside.join()
assert sys.modules["pandas"].__version__ == "3"
"""


_SHARED = 'assert pa.default_memory_pool().backend_name == "system"'
_OF_ITS_OWN = """
import os
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "mimalloc"
"""
_AS_ASKED = 'assert pa.default_memory_pool().backend_name == "mimalloc"'


def _succeeds(*parts: str, path: Path | None = None) -> None:
    first = [] if path is None else ["import sys", f"sys.path.insert(0, {str(path)!r})"]
    done = subprocess.run([sys.executable, "-c", "\n".join([*first, *parts])], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("parts", [(_WITHOUT, _NONE, _LOADED, _KNOWN), (_LOADED, _WITHOUT, _KNOWN)], ids=["later", "before"])
def test_arrays_are_made_without_pandas_until_somebody_loads_it(parts: tuple[str, ...]) -> None:
    """A task that has no use for it does not wait for it; code that has, whenever it comes, finds that Arrow knows it."""
    _succeeds(*parts)


@pytest.mark.parametrize(
    ("pandas", "parts"),
    [
        ("raise RuntimeError('broken')", ("try:", "    import pandas", "except RuntimeError:", "    pass", _NONE, _WITHOUT)),
        ("__version__ = '1'", (_LOADED,)),
        ("__version__ = '3'", (_BESIDE,)),
    ],
    ids=["broken", "too old for Arrow", "loaded by another thread while Arrow looks"],
)
def test_whoever_loads_pandas_finds_what_is_there(tmp_path: Path, pandas: str, parts: tuple[str, ...]) -> None:
    """What they get, and what they hear, is as if Sluice were not there; and Sluice minds nothing of it."""
    (tmp_path / "pandas.py").write_text(pandas)
    _succeeds(_WITHOUT, _NONE, *parts, path=tmp_path)


@pytest.mark.parametrize("parts", [(_WITHOUT, _SHARED), (_OF_ITS_OWN, _WITHOUT, _AS_ASKED)], ids=["shared", "asked for"])
def test_memory_is_taken_where_python_takes_it_unless_somebody_wants_it_otherwise(parts: tuple[str, ...]) -> None:
    """What was freed by one is used by the other."""
    _succeeds(*parts)
