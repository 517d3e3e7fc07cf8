-- name: end_shards
-- Fence whoever still works on the shards of a run that is over, and mark those that were under way as failed.
update sluice_state.shard set
    token = nextval('sluice_state.token_seq'),
    status = case when status = any(%(sources)s) then %(status)s else status end,
    failure_error = case when status = any(%(sources)s) then %(failure_error)s else failure_error end,
    failure_message = case when status = any(%(sources)s) then %(failure_message)s else failure_message end
where run = %(run)s and (%(all_of_them)s or status = any(%(sources)s))
returning key, status, failure_message = %(failure_message)s as was_under_way

-- name: adopt_shards
-- Copy another run's plan, if one of its shards has a fresh checkpoint.
-- Such shards as they stand, where what was not finished is pending again, the others as they were planned. What is listed by now
-- is another plan, and two of them make no whole.
with plan as (
    select *, coalesce(progress_at > now() - %(fresh)s::interval, false) as is_fresh from sluice_state.shard where run = %(donor)s
)
insert into sluice_state.shard (
    run, key, params, transformer_version, status, epoch, cursor, exhausted, watermark, until, supplied_at, high_mark, chunks, pages, records,
    state_version, progress_at
)
select %(run)s, key, params, transformer_version, case when is_fresh and status = %(finished)s then status else %(pending)s end,
    case when is_fresh then epoch else 0 end, case when is_fresh then cursor end, is_fresh and exhausted, watermark,
    case when is_fresh then until end, case when is_fresh then supplied_at end, case when is_fresh then high_mark end,
    case when is_fresh then chunks else 0 end, case when is_fresh then pages else 0 end,
    case when is_fresh then records else 0 end, state_version, case when is_fresh then progress_at end
from plan where exists (select from plan where is_fresh)
order by key
returning progress_at is not null as has_checkpoint

-- name: adopt_artifacts
-- Copy the pointers of the shards whose checkpoints were adopted.
insert into sluice_state.artifact (run, sync, kind, shard, seq, variant, key, bytes, sha256, records, expires_at, pinned)
select shard.run, artifact.sync, artifact.kind, artifact.shard, artifact.seq, artifact.variant, artifact.key, artifact.bytes,
    artifact.sha256, artifact.records, artifact.expires_at, artifact.pinned
from sluice_state.artifact join sluice_state.shard on shard.run = %(run)s and shard.key = artifact.shard
    and shard.progress_at is not null
where artifact.run = %(donor)s and artifact.kind = any(%(kinds)s) and artifact.superseded_at is null
order by artifact.id

-- name: hold_donors
-- Keep the chunks of some runs from being removed, until this transaction ends.
select id from sluice_state.run where id = any(%(donors)s) order by id for no key update

-- name: whole_shards
-- The shards of some runs that were fetched to their end and of which every raw chunk is kept, oldest run first.
-- One that was taken over from an earlier of these runs, chunks and all, is the same once more, and left out.
with donor as (
    select run, place from unnest(%(donors)s::text[]) with ordinality as listed (run, place)
), chunk as (
    select donor.place, donor.run, artifact.shard, artifact.key
    from donor join sluice_state.artifact on artifact.run = donor.run and artifact.kind = %(raw)s and superseded_at is null
    where cardinality(%(shards)s::text[]) = 0 or artifact.shard = any(%(shards)s)
)
select shard.run, shard.key
from donor join sluice_state.shard on shard.run = donor.run
where shard.exhausted and (cardinality(%(shards)s::text[]) = 0 or shard.key = any(%(shards)s))
    and shard.chunks = (select count(*) from chunk where chunk.run = shard.run and chunk.shard = shard.key)
    and not exists (
        select from chunk join chunk as earlier on earlier.key = chunk.key and earlier.place < chunk.place
        join sluice_state.shard as before on before.run = earlier.run and before.key = earlier.shard and before.exhausted
        where chunk.run = shard.run and chunk.shard = shard.key
    )
order by donor.place, shard.key

-- name: replay_shards
-- Make one shard, as fetched and not mapped, of all those of a key, the newest of which says what it was asked for with.
insert into sluice_state.shard (
    run, key, params, transformer_version, status, cursor, exhausted, until, supplied_at, chunks, pages, records, state_version,
    progress_at
)
select %(run)s, shard.key, (array_agg(shard.params order by place desc))[1], (%(versions)s::jsonb ->> shard.key)::integer, %(pending)s,
    (array_agg(shard.cursor order by place desc))[1], true, max(shard.until), max(shard.supplied_at), sum(shard.chunks),
    sum(shard.pages), sum(shard.records), %(state_version)s, now()
from unnest(%(runs)s::text[], %(keys)s::text[]) with ordinality as whole (run, key, place)
join sluice_state.shard on shard.run = whole.run and shard.key = whole.key
group by shard.key order by shard.key
on conflict (run, key) do nothing
returning key

-- name: replay_chunks
-- Copy the pointers to the raw chunks of the shards that were made, those of older runs first.
-- They live for as long as the run's own would.
insert into sluice_state.artifact (run, sync, kind, shard, seq, variant, key, bytes, sha256, records, expires_at, pinned)
select %(run)s, sync, kind, shard, row_number() over (partition by shard order by place, seq, id) - 1, variant, artifact.key, bytes,
    sha256, records, case when expires_at is not null then greatest(expires_at, %(expires_at)s) end, pinned
from unnest(%(runs)s::text[], %(keys)s::text[]) with ordinality as whole (run, key, place)
join sluice_state.artifact on artifact.run = whole.run and artifact.shard = whole.key and kind = %(raw)s and superseded_at is null
where whole.key = any(%(adopted)s)
order by shard, place, seq
