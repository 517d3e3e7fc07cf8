"""dlt with its own REST source: pages in, a table merged by its key; nested values stay JSON.

usage: with_dlt.py default|tuned|arrow SUPPLIER DATABASE_URL FOLDER

`default` is as its documentation has it. `tuned` normalises in two processes, writes Parquet, files of a size that lets them,
and upserts. `arrow` is fed with Arrow tables of a source of its own, so that dlt does not look at the records at all.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

MERGE = {"disposition": "merge", "strategy": "upsert"}
TUNED = {
    "NORMALIZE__WORKERS": "2",
    "LOAD__WORKERS": "4",
    "DATA_WRITER__FILE_MAX_ITEMS": "10000",
    "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "10000",
}
NESTED = ("address", "amenities", "rooms")


def rest(supplier: str, disposition: Any, *, parallel: bool) -> Any:
    """Return dlt's REST source of all countries."""
    from dlt.sources.rest_api import rest_api_source

    paginator = {"type": "cursor", "cursor_path": "next_cursor", "cursor_param": "cursor"}
    hotels = {
        "name": "hotels",
        "primary_key": "id",
        "write_disposition": disposition,
        "parallelized": parallel,
        "endpoint": {
            "path": "hotels",
            "params": {"country": "{resources.countries.code}", "limit": 500},
            "data_selector": "hotels",
        },
    }
    countries = {"name": "countries", "selected": False, "endpoint": {"path": "countries", "paginator": "single_page"}}
    config: Any = {"client": {"base_url": f"{supplier}/", "paginator": paginator}, "resources": [countries, hotels]}
    return rest_api_source(config, max_table_nesting=0)


def arrow(supplier: str) -> Any:
    """Return a source of Arrow tables, one a country."""
    import dlt
    import orjson
    import pyarrow as pa
    import requests

    def table(hotels: list[dict[str, Any]]) -> pa.Table:
        columns = {name: [hotel[name] for hotel in hotels] for name in hotels[0]}
        for name in NESTED:
            columns[name] = [orjson.dumps(value).decode() for value in columns[name]]
        return pa.table(columns)

    @dlt.resource(name="hotels", primary_key="id", write_disposition=MERGE, columns={n: {"data_type": "json"} for n in NESTED})
    def hotels() -> Iterator[pa.Table]:
        with requests.Session() as session:
            for country in session.get(f"{supplier}/countries", timeout=60).json():
                query, found = {"country": country["code"], "limit": "500"}, []
                while True:
                    page = orjson.loads(session.get(f"{supplier}/hotels", params=query, timeout=60).content)
                    found += page["hotels"]
                    if page["next_cursor"] is None:
                        break
                    query["cursor"] = page["next_cursor"]
                yield table(found)

    return hotels()


def main(way: str, supplier: str, database: str, folder: str) -> None:
    """Load everything once."""
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    if way == "tuned":
        os.environ.update(TUNED)
    import dlt

    if way == "arrow":
        source = arrow(supplier)
    else:
        source = rest(supplier, "merge" if way == "default" else MERGE, parallel=way == "tuned")
    pipeline = dlt.pipeline("peer", pipelines_dir=folder, destination=dlt.destinations.postgres(database), dataset_name="peer")
    done = pipeline.run(source, **({} if way == "default" else {"loader_file_format": "parquet"}))
    done.raise_on_failed_jobs()


if __name__ == "__main__":
    main(*sys.argv[1:])
