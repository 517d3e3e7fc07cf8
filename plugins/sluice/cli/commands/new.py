"""`sluice new`: what a person says of a supplier in; a commented spec, its stage and its DAG file out."""

import sys
from functools import partial
from typing import Annotated, get_args

import typer

from sluice.cli.drafting.choices import FORMATS, Kind, Paging, Shards
from sluice.cli.session import AsJson, session_of


def new(
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the sync is to be called: hotels.")],
    kind: Annotated[str | None, typer.Option(metavar="|".join(get_args(Kind)), help="What the supplier offers.")] = None,
    connection: Annotated[str | None, typer.Option(help="Airflow connection; default: NAME_supplier.")] = None,
    path: Annotated[str | None, typer.Option(help="rest: path below the connection's host; default: /NAME.")] = None,
    table: Annotated[str | None, typer.Option(help="sql: the table to read; default: public.NAME.")] = None,
    files: Annotated[
        list[str] | None, typer.Option(help="files: a path or key, * stands for anything; may be repeated.")
    ] = None,
    bucket: Annotated[str | None, typer.Option(help="files: the bucket, if they are in S3.")] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", metavar="|".join(FORMATS), help="files: what they hold.")
    ] = None,
    code: Annotated[str | None, typer.Option(help="code: the class by its dotted path: suppliers.Hotels.")] = None,
    records: Annotated[str | None, typer.Option(help="Where the list of records stands in an answer: data.items.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="What identifies an object; may be repeated; default: id.")] = None,
    version_field: Annotated[str | None, typer.Option(help="What orders the versions of an object: updated_at.")] = None,
    watermark: Annotated[str | None, typer.Option(help="What grows with every change; makes the sync incremental.")] = None,
    paging: Annotated[str | None, typer.Option(metavar="|".join(get_args(Paging)), help="rest: how to go on.")] = None,
    shards: Annotated[
        str | None, typer.Option(metavar="|".join(get_args(Shards)), help="What to cut the sync into; files are shards.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The table to keep in step; default: public.NAME.")] = None,
    stage: Annotated[str | None, typer.Option(help="A stage of include/stages.yaml, or a new one; default: NAME.")] = None,
    schedule: Annotated[str | None, typer.Option(help='Cron in UTC or a preset: "@daily".')] = None,
    no_look: Annotated[bool, typer.Option("--no-look", help="Do not ask the supplier for its first records.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a new sync: a commented spec, its stage and its DAG file. Nothing that is there is overwritten.

    Asks for what no option says, if somebody sits at a terminal. Where the connection is defined already, the supplier is asked
    for its first records, and their fields are proposed, to be checked.

    Example: sluice new hotels --kind rest --path /v1/hotels --paging link --key id --watermark updated_at
    """
    from sluice.cli.drafting.asking import drafted_by
    from sluice.cli.drafting.look import Seen, look
    from sluice.cli.drafting.project_files import Project
    from sluice.cli.drafting.written import document_of, draw_written

    session = session_of(context)
    output = session.begin(as_json=as_json)
    settings = session.settings()
    project = Project(settings.include.resolve())
    project.refuse(name)
    options = {
        "kind": kind,
        "connection": connection,
        "path": path,
        "table": table,
        "files": files,
        "bucket": bucket,
        "format": file_format,
        "code": code,
        "records": records,
        "key": key,
        "version": version_field,
        "watermark": watermark,
        "paging": paging,
        "shards": shards,
        "target": target,
        "stage": stage,
        "schedule": schedule,
    }
    draft = drafted_by(name, options, project.stages, is_there=sys.stdin.isatty() and not as_json)
    stages = project.with_stage(draft)
    seen = Seen(draft, 0, is_connected=False)
    if not no_look:
        seen = look(draft, stages.text, settings, session.connections(), finds_records=records is None)
    written = project.write(seen.draft, stages)
    output.result(document_of(seen, written), partial(draw_written, seen=seen, written=written))
