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

-- name: hold_donor
-- Keep the chunks of a run from being removed, until this transaction ends.
select id from sluice_state.run where id = %(donor)s for no key update

-- name: replay_shards
-- Copy the shards of another run that were fetched to their end and of which every raw chunk is kept, as fetched and not mapped.
insert into sluice_state.shard (
    run, key, params, status, cursor, exhausted, until, supplied_at, chunks, pages, records, state_version, progress_at
)
select %(run)s, key, params, %(pending)s, cursor, exhausted, until, supplied_at, chunks, pages, records, %(state_version)s, now()
from sluice_state.shard
where run = %(donor)s and exhausted and (cardinality(%(shards)s::text[]) = 0 or key = any(%(shards)s))
    and chunks = (
        select count(*) from sluice_state.artifact
        where artifact.run = shard.run and artifact.shard = shard.key and kind = %(raw)s and superseded_at is null
    )
order by key
on conflict (run, key) do nothing
returning key

-- name: replay_chunks
-- Copy the pointers to the raw chunks of the shards that were copied, and let them live for as long as the run's own would.
insert into sluice_state.artifact (run, sync, kind, shard, seq, variant, key, bytes, sha256, records, expires_at, pinned)
select %(run)s, sync, kind, shard, seq, variant, key, bytes, sha256, records,
    case when expires_at is not null then greatest(expires_at, %(expires_at)s) end, pinned
from sluice_state.artifact
where run = %(donor)s and shard = any(%(adopted)s) and kind = %(raw)s and superseded_at is null
order by id
