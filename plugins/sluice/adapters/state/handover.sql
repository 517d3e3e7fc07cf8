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
-- Copy the checkpoints of another run's shards, where they are fresh: what was not finished is pending again.
insert into sluice_state.shard (
    run, key, params, status, epoch, cursor, exhausted, watermark, until, supplied_at, high_mark, chunks, pages, records,
    state_version, progress_at
)
select %(run)s, key, params, case when status = %(finished)s then status else %(pending)s end, epoch, cursor, exhausted,
    watermark, until, supplied_at, high_mark, chunks, pages, records, state_version, progress_at
from sluice_state.shard where run = %(donor)s and progress_at > now() - %(fresh)s::interval
order by key
returning key

-- name: adopt_artifacts
-- Copy the pointers of the shards that were adopted.
insert into sluice_state.artifact (run, sync, kind, shard, seq, variant, key, bytes, sha256, records, expires_at, pinned)
select shard.run, artifact.sync, artifact.kind, artifact.shard, artifact.seq, artifact.variant, artifact.key, artifact.bytes,
    artifact.sha256, artifact.records, artifact.expires_at, artifact.pinned
from sluice_state.artifact join sluice_state.shard on shard.run = %(run)s and shard.key = artifact.shard
where artifact.run = %(donor)s and artifact.kind = any(%(kinds)s) and artifact.superseded_at is null
order by artifact.id
