-- name: take_fence
-- Refuses whoever holds an older token than somebody before.
insert into sluice_ledger.fence as f (sync, token) values (%(sync)s, %(token)s)
on conflict (sync) do update set token = excluded.token where f.token <= excluded.token
returning token

-- name: create_approved
-- What was approved, and the rows it asks for; both end with the transaction.
create temporary table approved (
    key text collate "C" not null,
    outcome text not null,
    shard text,
    seq integer,
    position integer,
    version bigint,
    raw_hash bytea,
    row_hash bytea,
    old_state text,
    old_hash bytea,
    old_raw_hash bytea,
    old_version bigint,
    old_shard text,
    transformer_version integer,
    is_tombstone boolean not null generated always as (
        raw_hash is not null and (outcome = 'deleted' or (outcome = 'refreshed' and old_state is distinct from 'live'))
    ) stored
) on commit drop;
create temporary table moved (
    key text collate "C" primary key,
    state text,
    row_hash bytea,
    source_version bigint
) on commit drop

-- name: index_approved
-- Finds single objects, and lets the planner know how many there are. A key that is made at once costs less than one kept up.
create unique index on approved (key);
analyze approved (key, outcome, shard, seq)

-- name: create_incoming
-- The approved rows on their way in, as text: only what is written is cast. The columns are those of the spec.
create temporary table incoming (
    _key text collate "C" primary key,
    {}
) on commit drop

-- name: leave_deletions_out
-- The approval was without deletions.
delete from approved where outcome = 'deleted'

-- name: leave_removals_out
-- The approval of a rollback was without deletions: what has no place to come from stays.
delete from approved where outcome = 'rolled-back' and position is null

-- name: find_moved
-- Objects whose ledger row is no longer the one reviewed. The target is locked: none can move after this.
insert into moved
select a.key, o.state, o.row_hash, o.source_version
from approved a
left join sluice_ledger.object o on o.sync = %(sync)s and o.key = a.key
where a.outcome in ('created', 'changed', 'reappeared', 'deleted', 'refreshed')
    and (o.state, o.row_hash, o.source_version) is distinct from (a.old_state, a.old_hash, a.old_version)

-- name: drop_settled
-- What moved may only shrink the approval: a deletion for absence or a refreshed hash is dropped, and so is what the ledger
-- holds by now. A tombstone has a version, as rows have: it stays where that tells which of the two is newer.
delete from approved a using moved m
where m.key = a.key and case
    when a.is_tombstone then m.state is distinct from 'live' and (a.version <> m.source_version) is not true
    else a.outcome in ('deleted', 'refreshed') or (m.state = 'live' and m.row_hash = a.row_hash)
end

-- name: mark_stale
-- What moved to something newer makes the approved row an old one.
update approved a set outcome = 'stale', old_hash = m.row_hash from moved m where m.key = a.key and a.version < m.source_version

-- name: keep_newer
-- What moved to something older takes the approved row, or the approved deletion, all the same.
update approved a
set outcome = case
        when a.is_tombstone then case m.state when 'deleted' then 'refreshed' else 'deleted' end
        when m.state is null then 'created' when m.state = 'deleted' then 'reappeared' else 'changed'
    end,
    old_hash = m.row_hash, old_state = m.state, old_version = m.source_version
from moved m
where m.key = a.key and a.version > m.source_version
    and (a.outcome in ('created', 'changed', 'reappeared', 'deleted') or (a.is_tombstone and m.state = 'deleted'))

-- name: undecided
-- What moved, and no version tells which of the two is newer; or to what a tombstone would delete, which nobody has approved.
select a.key from approved a join moved m using (key)
where case
    when a.is_tombstone then m.state = 'live' and (a.outcome = 'refreshed' or (a.version > m.source_version) is not true)
    else a.outcome in ('created', 'changed', 'reappeared') and (a.version > m.source_version) is not true
end
order by a.key

-- name: create_wanted
-- Where in which rows artifacts the approved rows stand and, one behind the other, their hashes. Approved is in the order of the
-- keys: one pass over it costs less than to look up the rows of each artifact, or to sort them. There may be ten thousand artifacts.
create temporary table wanted on commit drop as
select shard, seq, array_agg(position) as positions, string_agg(row_hash, '') as row_hashes
from approved where outcome in ('created', 'changed', 'reappeared') group by shard, seq;
create unique index on wanted (shard, seq)

-- name: needed
-- The rows artifacts that hold approved rows.
select shard, seq from wanted order by shard, seq

-- name: wanted
-- What is wanted of one of them.
select positions, row_hashes from wanted where shard = %(shard)s and seq = %(seq)s

-- name: outcomes
-- The publication, counted.
select outcome, count(*) as objects from approved group by outcome

-- name: add_publication
-- A review is applied once. Its instant is behind that of the sync's last publication, whatever the server's clock has done
-- since: the spans of a history rest on that.
insert into sluice_ledger.publication (
    sync, review, run, counts, approved_by, undoes, undo_key, undo_sha256, transformer_versions, applied_at
)
values (%(sync)s, %(review)s, %(run)s, %(counts)s, %(approved_by)s, %(undoes)s, %(undo_key)s, %(undo_sha256)s,
    array(
        select distinct coalesce(transformer_version, %(transformer_version)s) as version from approved
        where outcome in ('created', 'changed', 'deleted', 'reappeared', 'rolled-back') order by version
    ),
    greatest(
        clock_timestamp(),
        (
            select applied_at + interval '1 microsecond' from sluice_ledger.publication
            where sync = %(sync)s order by id desc limit 1
        )
    ))
returning *

-- name: remember_new
-- What the target holds from now on, of objects that nobody knew: none of them is in the ledger, as `find_moved` has seen.
insert into sluice_ledger.object (
    sync, key, shard, raw_hash, row_hash, transformer_version, source_version, state, last_changed_run, publication
)
select %(sync)s, key, shard, raw_hash, row_hash, coalesce(transformer_version, %(transformer_version)s), version, 'live',
    %(run)s, %(publication)s
from approved where outcome = 'created' order by key

-- name: remember_rows
-- What the target holds from now on, of all others.
insert into sluice_ledger.object as o (
    sync, key, shard, raw_hash, row_hash, transformer_version, source_version, state, last_changed_run, publication
)
select %(sync)s, key, shard, raw_hash, row_hash, coalesce(transformer_version, %(transformer_version)s), version, 'live',
    %(run)s, %(publication)s
from approved where outcome in ('changed', 'reappeared') order by key
on conflict (sync, key) do update set
    shard = excluded.shard, raw_hash = excluded.raw_hash, row_hash = excluded.row_hash,
    transformer_version = excluded.transformer_version, source_version = excluded.source_version, state = 'live',
    last_changed_run = excluded.last_changed_run, publication = excluded.publication

-- name: remember_deletions
-- Who is gone keeps the version as of which, so that an older row cannot come back.
update sluice_ledger.object o
set state = 'deleted', last_changed_run = %(run)s, publication = %(publication)s,
    raw_hash = coalesce(a.raw_hash, o.raw_hash), source_version = coalesce(a.version, o.source_version)
from approved a where a.outcome = 'deleted' and o.sync = %(sync)s and o.key = a.key

-- name: remember_tombstones
-- Who was said to be gone before he ever came: what is older, and comes later, does not bring him in.
insert into sluice_ledger.object (
    sync, key, shard, raw_hash, row_hash, transformer_version, source_version, state, last_changed_run, publication
)
select %(sync)s, key, shard, raw_hash, row_hash, coalesce(transformer_version, %(transformer_version)s), version, 'deleted',
    %(run)s, %(publication)s
from approved where outcome = 'refreshed' and old_state is null order by key
on conflict (sync, key) do nothing

-- name: refresh_hashes
-- The same row in other bytes, of a newer version, or from another shard.
update sluice_ledger.object o
set raw_hash = a.raw_hash, source_version = a.version, shard = a.shard,
    transformer_version = coalesce(a.transformer_version, %(transformer_version)s)
from approved a where a.outcome = 'refreshed' and o.sync = %(sync)s and o.key = a.key

-- name: ensure_partition
-- Events of a new month need a place.
select sluice_ledger.ensure_event_partition(%(applied_at)s)

-- name: add_events
-- What became of each object, and by which version of the transformation.
insert into sluice_ledger.object_event (
    at, sync, key, run, outcome, old_hash, new_hash, source_version, publication, shard, transformer_version
)
select
    %(applied_at)s, %(sync)s, key, %(run)s, outcome, old_hash,
    case when outcome in ('created', 'changed', 'reappeared') then row_hash end, version, %(publication)s, shard,
    coalesce(transformer_version, %(transformer_version)s)
from approved where outcome <> 'refreshed' order by key
