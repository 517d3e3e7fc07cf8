-- A shard may be transformed by another version than most of its run, and a run may take up dead letters again, or map what all
-- runs of a window have fetched. Of what could not be taken in, more is known, and less is written.

alter table sluice_state.shard add column transformer_version integer check (transformer_version >= 1);
comment on column sluice_state.shard.transformer_version is
    'The version of the transformation that makes its rows; null: the one of its run, planned by an older release.';

alter table sluice_state.run
    add column redrives jsonb check (jsonb_typeof(redrives) = 'object'),
    drop constraint run_mode_check,
    add constraint run_mode_check check (mode in ('incremental', 'full', 'rollback', 'replay', 'redrive')),
    drop constraint run_replays_check,
    add constraint run_replays_check check (
        (replays is null or mode = 'replay') and (mode <> 'replay' or (replays is null) = (window_start is not null))
    ),
    add constraint run_redrives_mode check ((mode = 'redrive') = (redrives is not null));
comment on column sluice_state.run.replays is
    'The run whose raw data a replay maps again, by name, since that may be removed before; null for what it maps of a window, and for every other mode.';
comment on column sluice_state.run.redrives is 'Which dead letters it takes up again; null for every other mode.';

-- Dead letters. One that nobody can name is known by its bytes, so that the same garbage, delivered daily, is one letter. Of a cause
-- that has more objects than anybody reads letters of, the rest are lines of rejects artifacts: counted exactly, and cheap to keep.

alter table sluice_state.dead_letter
    add column raw_hash bytea check (octet_length(raw_hash) = 16),
    add column transformer_version integer check (transformer_version >= 1),
    add column delivered_at timestamptz,
    add column redriven_by text[] not null default '{}',
    add column ended_at timestamptz,
    add column ended_by text,
    add column reason text,
    drop constraint dead_letter_status_check,
    add constraint dead_letter_status_check check (status in ('open', 'closed', 'discarded')),
    add constraint dead_letter_discarded_by_a_person check (
        status <> 'discarded' or (ended_at is not null and ended_by is not null and reason <> '')
    );
create unique index dead_letter_open_of_bytes on sluice_state.dead_letter (sync, raw_hash)
    where status = 'open' and object_key is null and raw_hash is not null;
create index dead_letter_open_of_cause on sluice_state.dead_letter (sync, error, field) where status = 'open';
create index dead_letter_discarded on sluice_state.dead_letter (sync, raw_hash) where status = 'discarded';
create index dead_letter_redriven on sluice_state.dead_letter using gin (redriven_by);
comment on column sluice_state.dead_letter.raw_hash is 'xxh3-128 of its bytes; null: an older release has met it.';
comment on column sluice_state.dead_letter.transformer_version is
    'The version of the transformation that rejected it last; null: an older release has met it.';
comment on column sluice_state.dead_letter.delivered_at is
    'When the run was admitted that fetched its bytes from the supplier; null: an older release has met it.';
comment on column sluice_state.dead_letter.redriven_by is
    'The redrives that have taken up its bytes as they stand here and not rejected them again: several may wait for a review.';
comment on column sluice_state.dead_letter.status is 'Open until the object comes right, or a person discards it.';
comment on column sluice_state.dead_letter.ended_at is 'When it was closed or discarded; null for one closed by an older release.';
comment on column sluice_state.dead_letter.ended_by is 'The run that closed it, or the person who discarded it.';
comment on column sluice_state.dead_letter.reason is 'Why it was discarded, or closed though its object has not come right.';

create table sluice_state.dead_letter_lines (
    id bigint generated always as identity primary key,
    sync text not null,
    error text not null,
    field text,
    message text not null,
    run text not null,
    shard text collate "C" not null,
    artifact text not null,
    raw_artifact text not null,
    transformer_version integer not null check (transformer_version >= 1),
    delivered_at timestamptz not null,
    lines int4multirange not null check (not isempty(lines)),
    status text not null default 'open' check (status in ('open', 'discarded')),
    taken jsonb not null default '{}' check (jsonb_typeof(taken) = 'object'),
    seen_at timestamptz not null default now(),
    ended_at timestamptz,
    ended_by text,
    reason text,
    constraint dead_letter_lines_discarded_by_a_person check (
        (status = 'discarded') = (ended_at is not null and ended_by is not null and reason is not null)
    )
);
create unique index dead_letter_lines_of_artifact
    on sluice_state.dead_letter_lines (artifact, raw_artifact, error, coalesce(field, ''), delivered_at);
create index dead_letter_lines_of_sync on sluice_state.dead_letter_lines (sync, id);
create index dead_letter_lines_by_raw on sluice_state.dead_letter_lines (raw_artifact);
create index dead_letter_lines_by_run on sluice_state.dead_letter_lines (run);

comment on table sluice_state.dead_letter_lines is
    'Objects that could not be taken in, and of which no letter is written since their cause has enough of them: where they stand.';
comment on column sluice_state.dead_letter_lines.id is 'Grows with every row.';
comment on column sluice_state.dead_letter_lines.sync is 'The sync.';
comment on column sluice_state.dead_letter_lines.error is 'What kind of rule they break.';
comment on column sluice_state.dead_letter_lines.field is 'The field that breaks it; null if the whole object does.';
comment on column sluice_state.dead_letter_lines.message is 'What is wrong with one of them.';
comment on column sluice_state.dead_letter_lines.run is 'The run that met them.';
comment on column sluice_state.dead_letter_lines.shard is 'The shard that delivered them.';
comment on column sluice_state.dead_letter_lines.artifact is 'Key of the rejects artifact whose lines they are.';
comment on column sluice_state.dead_letter_lines.raw_artifact is 'Key of the raw artifact that holds their bytes.';
comment on column sluice_state.dead_letter_lines.transformer_version is 'The version of the transformation that rejected them.';
comment on column sluice_state.dead_letter_lines.delivered_at is
    'When the run was admitted that fetched their bytes from the supplier, or the first of several such runs.';
comment on column sluice_state.dead_letter_lines.lines is
    'The lines, counted from 0, of objects that are still wrong; the row goes with the last of them.';
comment on column sluice_state.dead_letter_lines.status is 'Open until they come right, or a person discards them.';
comment on column sluice_state.dead_letter_lines.taken is 'The lines that redrives have taken up, as a multirange, by the id of the run.';
comment on column sluice_state.dead_letter_lines.seen_at is 'When they were met.';
comment on column sluice_state.dead_letter_lines.ended_at is 'When they were discarded; null while they are open.';
comment on column sluice_state.dead_letter_lines.ended_by is 'The person who discarded them.';
comment on column sluice_state.dead_letter_lines.reason is 'Why they were discarded.';

-- What a suite finds of a run is part of what is approved.

alter table sluice_state.review add column checks text check (octet_length(checks) = 64);
comment on column sluice_state.review.checks is
    'sha-256 of what the suite of its sync found; null: its sync names none, or an older release made it.';
