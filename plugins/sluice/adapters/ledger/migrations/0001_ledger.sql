-- The ledger stands in the target's database, so that rows, ledger and publication commit in one transaction. It grows with
-- change and not with time: an object that a run finds as it was costs no write here.
--
-- Keys are compared byte by byte (collation "C"): the diff is ordered as Python orders it, and bulk joins do not pay for a
-- language. No foreign keys lead out of the two bulk tables, because a publication writes them set-wise from its own id.

comment on schema sluice_ledger is 'What Sluice knows of every object of the tables it keeps in step.';
comment on table sluice_ledger.migration is 'The revision this schema is at.';
comment on column sluice_ledger.migration.version_num is 'The last migration applied.';

create table sluice_ledger.publication (
    id bigint generated always as identity primary key,
    sync text not null,
    review text not null unique,
    run text not null,
    counts jsonb not null check (jsonb_typeof(counts) = 'object'),
    undo_key text,
    undo_sha256 text check (undo_sha256 ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz not null default now(),
    rolled_back_by bigint references sluice_ledger.publication (id),
    constraint publication_undo_whole check ((undo_key is null) = (undo_sha256 is null)),
    constraint publication_rolled_back_later check (rolled_back_by > id)
);
create index publication_by_sync on sluice_ledger.publication (sync, id desc);

comment on table sluice_ledger.publication is 'Applied reviews: each at most once, explainable and undoable.';
comment on column sluice_ledger.publication.id is 'Grows with time within a sync.';
comment on column sluice_ledger.publication.sync is 'The sync.';
comment on column sluice_ledger.publication.review is 'The review that was applied; unique, so that it is applied once.';
comment on column sluice_ledger.publication.run is 'The run that was reviewed.';
comment on column sluice_ledger.publication.counts is 'How many objects had which outcome: {"created": 3, …}.';
comment on column sluice_ledger.publication.undo_key is 'The artifact that holds the rows as they were before; null if there were none.';
comment on column sluice_ledger.publication.undo_sha256 is 'SHA-256 of the undo artifact, in hex.';
comment on column sluice_ledger.publication.applied_at is 'When its transaction began.';
comment on column sluice_ledger.publication.rolled_back_by is 'The later publication that undid this one.';

-- The raw hash of an object is refreshed without a change of anything else. No index holds it, and pages keep some room, so
-- that such an update stays on its page and touches no index (HOT). Vacuum and statistics keep up with large publications.
create table sluice_ledger.object (
    sync text not null,
    key text collate "C" not null,
    shard text not null,
    raw_hash bytea not null check (octet_length(raw_hash) = 16),
    row_hash bytea not null check (octet_length(row_hash) = 16),
    transformer_version integer not null check (transformer_version >= 1),
    source_version bigint,
    state text not null check (state in ('live', 'deleted')),
    first_seen timestamptz not null default now(),
    last_changed_run text not null,
    publication bigint not null,
    primary key (sync, key)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

comment on table sluice_ledger.object is 'What the target holds of each object, since when, from where.';
comment on column sluice_ledger.object.sync is 'The sync.';
comment on column sluice_ledger.object.key is 'The natural key, its parts encoded into one text.';
comment on column sluice_ledger.object.shard is 'The shard that delivered it last.';
comment on column sluice_ledger.object.raw_hash is 'xxh3-128 of the bytes the supplier sent, seeded by how the spec reads them: what is known is not parsed.';
comment on column sluice_ledger.object.row_hash is 'xxh3-128 of the row made of them: equal rows are not written.';
comment on column sluice_ledger.object.transformer_version is 'The version of the transformation that made the row.';
comment on column sluice_ledger.object.source_version is
    'What orders the versions of the object: the number itself, or microseconds since 1970; null if the spec names none.';
comment on column sluice_ledger.object.state is 'Whether the target holds it: live or deleted.';
comment on column sluice_ledger.object.first_seen is 'When it was first published.';
comment on column sluice_ledger.object.last_changed_run is 'The run that last changed its row or its state.';
comment on column sluice_ledger.object.publication is 'The publication that last changed its row or its state.';

create table sluice_ledger.object_event (
    at timestamptz not null,
    sync text not null,
    key text collate "C" not null,
    run text not null,
    outcome text not null check (
        outcome in ('created', 'changed', 'deleted', 'reappeared', 'stale', 'rejected', 'redriven', 'rolled-back')
    ),
    old_hash bytea check (octet_length(old_hash) = 16),
    new_hash bytea check (octet_length(new_hash) = 16),
    source_version bigint,
    publication bigint,
    shard text,
    primary key (sync, key, at, outcome)
) partition by range (at);

comment on table sluice_ledger.object_event is
    'Append-only: what became of each object. One partition a month (UTC), made by ensure_event_partition.';
comment on column sluice_ledger.object_event.at is 'When the publication''s transaction began.';
comment on column sluice_ledger.object_event.sync is 'The sync.';
comment on column sluice_ledger.object_event.key is 'The object.';
comment on column sluice_ledger.object_event.run is 'The run it happened in.';
comment on column sluice_ledger.object_event.outcome is 'What became of it.';
comment on column sluice_ledger.object_event.old_hash is 'The row hash before; null if there was none.';
comment on column sluice_ledger.object_event.new_hash is 'The row hash after; null if nothing came in.';
comment on column sluice_ledger.object_event.source_version is 'The version that came in.';
comment on column sluice_ledger.object_event.publication is 'The publication it was part of.';
comment on column sluice_ledger.object_event.shard is 'The shard that delivered the object; null for one that was absent.';

create table sluice_ledger.fence (
    sync text primary key,
    token bigint not null check (token >= 0)
);

comment on table sluice_ledger.fence is 'The highest token seen per sync: the target itself refuses an older writer.';
comment on column sluice_ledger.fence.sync is 'The sync; its row is the lock that keeps publications of one sync apart.';
comment on column sluice_ledger.fence.token is 'Writers with a lower token are refused.';

-- A partition is made apart and then attached: that lets others read and write the table meanwhile, where
-- CREATE TABLE … PARTITION OF would shut them out until the publication commits. The month after is made as well, so that a
-- month rarely begins with publications waiting for each other.
create function sluice_ledger.ensure_event_partition(at timestamptz) returns void
language plpgsql
as $$
declare
    this_month constant timestamp := date_trunc('month', at at time zone 'UTC');
    month timestamp;
    name text;
begin
    foreach month in array array[this_month, this_month + interval '1 month'] loop
        name := 'object_event_' || to_char(month, 'YYYY_MM');
        continue when to_regclass('sluice_ledger.' || name) is not null;
        perform pg_advisory_xact_lock(hashtextextended('sluice_ledger.object_event', 0));
        continue when to_regclass('sluice_ledger.' || name) is not null;
        execute format('create table sluice_ledger.%I (like sluice_ledger.object_event including all)', name);
        execute format(
            'alter table sluice_ledger.object_event attach partition sluice_ledger.%I for values from (%L) to (%L)',
            name, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC'
        );
        execute format('comment on table sluice_ledger.%I is %L', name, 'Events of ' || to_char(month, 'YYYY-MM') || ', UTC.');
    end loop;
end
$$;

comment on function sluice_ledger.ensure_event_partition is
    'Makes the partitions of object_event for the month of an instant and for the month after, where they are missing.';
