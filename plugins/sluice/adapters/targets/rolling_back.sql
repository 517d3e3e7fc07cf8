-- name: create_images
-- What a publication overwrote, on its way back, and why some of it has to stay as it is; all of it ends with the transaction.
create temporary table image (
    key text collate "C" primary key,
    outcome text not null,
    position integer generated always as identity (minvalue 0 start 0),
    row json,
    ledger json,
    conflict text,
    changed_by bigint
) on commit drop;
create temporary table found (
    key text collate "C" primary key,
    row_hash bytea,
    is_live boolean not null
) on commit drop;
create temporary table difference (
    key text collate "C" not null,
    field text not null,
    place bigint not null,
    is_change boolean not null,
    old text,
    new text
) on commit drop

-- name: columns
-- The columns of a table that take a value.
select a.attname as name
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(table)s and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''

-- name: forget_found
-- Forgets what was found in the table before.
truncate found

-- name: lock_rows
-- Nobody changes the rows of the publication's objects from here on.
select from image i join {table} t on {overwritten} for update of t

-- name: find_conflicts
-- Objects that are not as the publication left them: another one changed them, or somebody changed the table. Of one that was
-- taken back already nothing is left to take back: what was left alone then stays so.
-- A row that a soft deletion left and somebody removed is no conflict: all of it is in the image. One that is still there is
-- compared with the image: what its hash is of, an older spec may have declared.
update image i set conflict = c.conflict, changed_by = c.changed_by
from (
    select
        i.key,
        case
            when o.publication <> %(undone)s or p.rolled_back_by is not null then 'published'
            when o.key is null or f.is_live is distinct from (o.state = 'live') and f.key is not null then 'altered'
            when f.key is null and o.state = 'live' then 'gone'
            when f.key is not null and case
                when i.outcome = 'deleted' then exists (
                    select from {table} t cross join unnest({fields}::text[]) as field (name)
                    where {overwritten}
                        and nullif(to_jsonb(t.*) -> field.name, 'null') is distinct from nullif(i.row::jsonb -> field.name, 'null')
                )
                else f.row_hash is distinct from o.row_hash
            end then 'altered'
        end as conflict,
        case when o.publication <> %(undone)s then o.publication else p.rolled_back_by end as changed_by
    from image i
    cross join (select rolled_back_by from sluice_ledger.publication where id = %(undone)s) p
    left join found f on f.key = i.key
    left join sluice_ledger.object o on o.sync = %(sync)s and o.key = i.key
) c
where c.key = i.key and c.conflict is not null

-- name: conflicts
-- What has to stay as it is.
select key, conflict, changed_by from image where conflict is not null order by key

-- name: result
-- The diff, in key order: with the place of the image where a row is put back, without one where it is taken out.
select
    i.key, 'rolled-back', l.shard,
    case when i.row is not null then 0 end, case when i.row is not null then i.position end,
    case when i.ledger is null then o.source_version else l.source_version end,
    l.raw_hash, l.row_hash, o.state, o.row_hash, o.raw_hash, o.source_version, o.shard, l.transformer_version
from image i
join sluice_ledger.object o on o.sync = {sync} and o.key = i.key
left join lateral json_populate_record(null::sluice_ledger.object, i.ledger) l on i.ledger is not null
where i.conflict is null order by i.key

-- name: figures
-- The objects that would be put back or taken out, and how many the target holds now.
select
    (select count(*) from image) as objects,
    (select count(*) from image where conflict is null) as restored,
    (select count(*) from sluice_ledger.object where sync = %(sync)s and state = 'live') as live_before,
    (
        select count(*) filter (where i.ledger ->> 'state' = 'live') - count(*) filter (where o.state = 'live')
        from image i join sluice_ledger.object o on o.sync = %(sync)s and o.key = i.key
        where i.conflict is null
    ) as live_more

-- name: find_differences
-- The fields that would change, before and after; of a row that comes or goes, all that have a value.
insert into difference (key, field, place, is_change, old, new)
select d.key, f.name, f.place, d.old is not null and d.new is not null, d.old ->> f.name, d.new ->> f.name
from (
    select i.key, to_jsonb(t.*) as old, i.row::jsonb as new
    from image i left join {table} t on {overwritten}
    where i.conflict is null
    offset 0
) d
cross join unnest({fields}::text[]) with ordinality as f (name, place)
where (d.old ->> f.name) is distinct from (d.new ->> f.name)

-- name: changes
-- How often each field would change, the most frequent first, with some objects.
select field, objects, key, old, new
from (
    select *, count(*) over (partition by field) as objects, row_number() over (partition by field order by key) as nth
    from difference where is_change
) d
where nth <= %(samples)s
order by objects desc, place, key

-- name: samples
-- Some of the objects, each with the fields that would change.
select
    i.key, i.ledger ->> 'shard' as shard, o.source_version as old_version,
    (i.ledger ->> 'source_version')::bigint as version, d.field, d.old, d.new
from (select * from image where conflict is null order by key limit %(samples)s) i
join sluice_ledger.object o on o.sync = %(sync)s and o.key = i.key
left join difference d on d.key = i.key
order by i.key, d.place

-- name: take_undone
-- The publication to take back, locked; nobody else takes it back meanwhile.
select rolled_back_by from sluice_ledger.publication where id = %(undone)s and sync = %(sync)s for update

-- name: moved
-- Objects that were to be restored and cannot be any more, or that the images do not hold.
select a.key from approved a left join image i on i.key = a.key
where a.outcome = 'rolled-back' and (i.key is null or i.conflict is not null)
order by a.key

-- name: keep_approved
-- Nothing but what was approved is written.
delete from image i where not exists (select from approved a where a.key = i.key and a.outcome = 'rolled-back')

-- name: take_out
-- Rows that were not there before.
delete from {table} t using image i where i.row is null and {matches}

-- name: first_row
-- One of the rows that were there before: all of them had the same columns.
select row from image where row is not null limit 1

-- name: overwrite
-- Rows that are there: the columns of the spec as they were, and no others.
update {table} t set {changes}
from image i cross join lateral json_populate_record(null::{table}, i.row) r
where i.row is not null and {matches}

-- name: put_back
-- Rows that are gone, with all they had that the table still has a column for.
insert into {table} ({columns}) overriding system value
select {values} from image i cross join lateral json_populate_record(null::{table}, i.row) r
where i.row is not null and not exists (select from {table} t where {matches})
order by i.key

-- name: bring_in
-- Former rows as they would come in, for a table that keeps every version.
insert into incoming (_key, {fields})
select i.key, {values} from image i cross join lateral json_to_record(i.row) as r ({columns}) where i.row is not null

-- name: create_taken_out
-- Objects that were not there before, as a deletion names them.
create temporary table taken_out on commit drop as select key, 'deleted' as outcome from image where row is null

-- name: remember_former
-- The ledger is what it was, changed by this publication.
update sluice_ledger.object o set
    shard = l.shard, raw_hash = l.raw_hash, row_hash = l.row_hash, transformer_version = l.transformer_version,
    source_version = l.source_version, state = l.state, last_changed_run = %(run)s, publication = %(publication)s
from image i cross join lateral json_populate_record(null::sluice_ledger.object, i.ledger) l
where i.ledger is not null and o.sync = %(sync)s and o.key = i.key

-- name: remember_hashes
-- What a row hashes to under the spec of this run, which may not be the one that first brought it.
update sluice_ledger.object o set row_hash = f.row_hash
from image i join found f on f.key = i.key
where i.ledger is not null and o.sync = %(sync)s and o.key = i.key and f.row_hash <> o.row_hash

-- name: bury_created
-- What the ledger did not know before leaves a tombstone, so that an older version cannot come in.
update sluice_ledger.object o set state = 'deleted', last_changed_run = %(run)s, publication = %(publication)s
from image i where i.ledger is null and o.sync = %(sync)s and o.key = i.key

-- name: add_events
-- What became of each object: the hash it had before, if it lives again.
insert into sluice_ledger.object_event (
    at, sync, key, run, outcome, old_hash, new_hash, source_version, publication, shard, transformer_version
)
select
    %(applied_at)s, %(sync)s, a.key, %(run)s, a.outcome, a.old_hash,
    case when i.ledger ->> 'state' = 'live' then a.row_hash end, a.version, %(publication)s, a.shard,
    coalesce(a.transformer_version, %(transformer_version)s)
from approved a join image i on i.key = a.key
order by a.key

-- name: mark_undone
-- Both publications name each other.
update sluice_ledger.publication set rolled_back_by = %(publication)s where id = %(undone)s
