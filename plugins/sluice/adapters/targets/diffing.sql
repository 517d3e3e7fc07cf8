-- name: create_staging
-- The staging area of one reviewing session: nobody else sees it, and it ends with the transaction.
create temporary table staged (
    shard text not null,
    seq integer not null,
    position integer not null,
    key text collate "C" not null,
    version bigint,
    raw_hash bytea not null,
    row_hash bytea not null,
    mapped boolean not null,
    deleted boolean not null,
    outdone boolean not null default false
) on commit drop;
create temporary table rejected (key text collate "C" not null, transformer_version integer) on commit drop;
create temporary table left_out (key text collate "C" primary key) on commit drop;
create temporary table made_by (shard text primary key, transformer_version integer not null) on commit drop;
create temporary table compared (
    key text collate "C" not null,
    outcome text not null,
    shard text,
    seq integer,
    position integer,
    version bigint,
    raw_hash bytea,
    row_hash bytea,
    mapped boolean not null,
    old_state text,
    old_hash bytea,
    old_raw_hash bytea,
    old_version bigint,
    old_shard text,
    transformer_version integer,
    told boolean not null default false
) on commit drop

-- name: copy_rejected
-- Notes objects that were delivered and rejected; some perhaps twice.
copy rejected (key, transformer_version) from stdin

-- name: leave_out
-- Notes objects that are to be taken for not delivered.
insert into left_out (key) select unnest(%(keys)s::text[]) on conflict do nothing

-- name: drop_left_out
-- Forgets what was staged of objects that are left out.
delete from staged using left_out where left_out.key = staged.key

-- name: unstage
-- Forgets the rows of one artifact; what they have outdone counts again.
with forgotten as (delete from staged where shard = %(shard)s and seq = %(seq)s)
update staged set outdone = false where outdone and (shard, seq) <> (%(shard)s, %(seq)s)

-- name: clear_comparison
-- Forgets the last comparison, and lets the planner know how much is staged.
truncate compared, made_by;
analyze staged (key, outdone);
analyze rejected (key)

-- name: note_version
-- Notes a shard that another version of the transformation has made than most of its run.
insert into made_by (shard, transformer_version) values (%(shard)s, %(version)s)

-- name: mark_outdone
-- Of each delivered object the highest version counts, ties go to the later page. Most come once: to find those that do not costs
-- less than to sort all.
update staged set outdone = true where ctid = any(array(
    select id from (
        select ctid as id,
            row_number() over (partition by key order by version desc nulls last, seq desc, position desc, shard) as rank
        from staged where key in (select key from staged group by key having count(*) > 1)
    ) repeated
    where rank > 1
))

-- name: compare
-- Lays what is delivered beside what the ledger knows, in one pass. Older than the ledger's is stale. Who is said to be gone is
-- deleted, or counted alone where deletions are ignored; who was gone already, or was never here, is so as of the newer version:
-- what is older and comes later is stale then. What the target holds and nobody delivered is gone as well, where the run saw
-- everything; elsewhere the planner sees by the last condition that it need not read the whole ledger. Of what is unchanged, which
-- is most of it on most days, nobody wants to know more than how much there is.
with delivered as (
    select s.*, coalesce(m.transformer_version, %(transformer_version)s) as transformer_version
    from staged s left join made_by m on m.shard = s.shard where not s.outdone
), known as (
    select * from sluice_ledger.object where sync = %(sync)s
), judged as (
    select
        coalesce(l.key, o.key) as key,
        case
            when l.key is null and o.state = 'deleted' then 'unchanged'
            when l.key is null then case when %(deletes)s then 'deleted' else 'vanished' end
            when o.key is null and not l.deleted then 'created'
            when o.key is null then case when %(deletes)s and l.version is not null then 'refreshed' else 'unchanged' end
            when l.version < o.source_version then 'stale'
            when l.deleted and o.state = 'deleted' then case when l.version > o.source_version then 'refreshed' else 'unchanged' end
            when l.deleted then case when %(deletes)s then 'deleted' else 'vanished' end
            when o.state = 'deleted' then 'reappeared'
            when l.row_hash <> o.row_hash then 'changed'
            when l.raw_hash <> o.raw_hash or o.shard <> l.shard or o.transformer_version <> l.transformer_version then 'refreshed'
            else 'unchanged'
        end as outcome,
        coalesce(l.shard, o.shard) as shard, l.seq, l.position,
        case when l.key is null then o.source_version else l.version end as version,
        l.raw_hash, l.row_hash, coalesce(l.mapped, true) as mapped,
        o.state as old_state, o.row_hash as old_hash, o.raw_hash as old_raw_hash, o.source_version as old_version,
        o.shard as old_shard, l.transformer_version
    from delivered l full join known o on o.key = l.key
    where l.key is not null or %(complete)s
)
insert into compared select * from judged where outcome <> 'unchanged'

-- name: drop_rejected
-- Who was delivered in a form that could not be taken in is not gone.
delete from compared c using rejected r where r.key = c.key and c.seq is null

-- name: mark_outrun
-- What newer data has brought is not overwritten by older: a row of a run whose data is newer stays, unless the version says that
-- what comes is the newer one, or the very same. Where such a run was taken back, its publication counts no more.
update compared c set outcome = case
        when not s.deleted and o.state = 'live' and c.row_hash = o.row_hash or s.deleted and o.state = 'deleted' then 'unchanged'
        else 'stale'
    end
from staged s, sluice_ledger.object o join sluice_ledger.publication p on p.id = o.publication
where c.outcome in ('changed', 'reappeared', 'deleted', 'refreshed', 'vanished')
    and s.shard = c.shard and s.seq = c.seq and s.position = c.position
    and o.sync = %(sync)s and o.key = c.key
    and (c.version > o.source_version or c.version = o.source_version and o.state = 'live') is not true
    and case
        when p.undoes is null then o.last_changed_run
        else (
            select e.run from sluice_ledger.object_event e
            join sluice_ledger.publication made on made.id = e.publication
            left join sluice_ledger.publication undoing on undoing.id = made.rolled_back_by
            where e.sync = %(sync)s and e.key = c.key and e.outcome in ('created', 'changed', 'deleted', 'reappeared', 'redriven')
                and (undoing.id is null or undoing.rolled_back_by is not null)
            order by e.at desc limit 1
        )
    end = any(%(newer)s)

-- name: mark_told
-- A supplier that repeats something old is told of once.
update compared c set told = true
where c.outcome = 'stale' and exists (
    select from sluice_ledger.object_event e
    where e.sync = %(sync)s and e.key = c.key and e.outcome = 'stale' and e.source_version = c.version
)

-- name: compare_rejected
-- What was delivered in no form that could be taken in.
insert into compared (key, outcome, mapped, old_state, old_hash, old_raw_hash, old_version, old_shard, transformer_version)
select r.key, 'rejected', true, o.state, o.row_hash, o.raw_hash, o.source_version, o.shard, r.transformer_version
from (select key, max(transformer_version) as transformer_version from rejected group by key) r
left join sluice_ledger.object o on o.sync = %(sync)s and o.key = r.key
where not exists (select from staged s where s.key = r.key)

-- name: unmapped
-- The artifacts that lack rows, because the ledger remembered their objects when they were made and no longer does.
select distinct shard, seq from compared
where not mapped and outcome in ('created', 'changed', 'reappeared')
order by shard, seq

-- name: result
-- The diff, in key order.
select key, outcome, shard, seq, position, version, raw_hash, row_hash, old_state, old_hash, old_raw_hash, old_version, old_shard,
    transformer_version
from compared where outcome not in ('unchanged', 'vanished') and not told order by key

-- name: outcomes
-- The comparison, counted by outcome. What was delivered and is not listed is unchanged. Seen was what was delivered, in whatever
-- form; vanished is what a run that saw everything did not deliver, or what is said to be gone where that is ignored; moved is what
-- another shard delivered than the last time. Noted is what leaves the table alone, and is news for the ledger: it has to know the
-- highest version, to tell what is older.
with counted as (
    select
        outcome,
        count(*) as objects,
        count(*) filter (where seq is not null or outcome = 'rejected') as seen,
        count(*) filter (where outcome = 'vanished' or (seq is null and outcome = 'deleted')) as vanished,
        count(*) filter (where seq is not null and shard <> old_shard) as moved,
        count(*) filter (
            where (outcome = 'stale' and not told) or (outcome = 'refreshed' and version is distinct from old_version)
        ) as noted
    from compared group by outcome
    union all
    select 'unchanged', u.objects, u.objects, 0, 0, 0
    from (
        select (select count(*) from staged where not outdone) - (select count(*) from compared where seq is not null) as objects
    ) u
)
select
    outcome,
    sum(objects)::bigint as objects,
    sum(seen)::bigint as seen,
    sum(vanished)::bigint as vanished,
    sum(moved)::bigint as moved,
    sum(noted)::bigint as noted
from counted group by outcome

-- name: versions
-- Of how many objects each version of the transformation has made what counts, and how many of them are new or differ.
with made as (
    select
        coalesce(m.transformer_version, %(transformer_version)s) as version, s.shard,
        count(*) as objects, 0 as created, 0 as changed
    from staged s left join made_by m on m.shard = s.shard where not s.outdone group by s.shard, m.transformer_version
    union all
    select
        transformer_version, shard, 0,
        count(*) filter (where outcome = 'created'), count(*) filter (where outcome = 'changed')
    from compared where seq is not null group by transformer_version, shard
)
select
    version,
    count(distinct shard) as shards,
    sum(objects)::bigint as objects,
    sum(created)::bigint as created,
    sum(changed)::bigint as changed
from made group by version order by version

-- name: first_loaded
-- How many new objects belong to shards of which the target holds nothing. The ledger is read once, however many shards there are.
with loaded as (select shard, count(*) as objects from compared where outcome = 'created' group by shard)
select coalesce(sum(objects), 0)::bigint as first_loaded from loaded
where shard not in (select shard from sluice_ledger.object where sync = %(sync)s and state = 'live')

-- name: live
-- How many objects the target holds.
select count(*) as live from sluice_ledger.object where sync = %(sync)s and state = 'live'
