-- name: plan
-- Insert the shards of a run that are not there yet.
insert into sluice_state.shard (run, key, params, transformer_version, status, watermark, state_version)
select %(run)s, planned.key, planned.params, planned.transformer_version, %(status)s, planned.watermark, %(state_version)s
from jsonb_to_recordset(%(plans)s) as planned (key text, params jsonb, transformer_version integer, watermark text)
order by planned.key collate "C"
on conflict (run, key) do nothing

-- name: of_run
-- The shards of a run, by key.
select * from sluice_state.shard where run = %(run)s order by key

-- name: get
-- One shard.
select * from sluice_state.shard where run = %(run)s and key = %(key)s

-- name: delivered
-- What each shard had in the last full runs of a sync that succeeded, newest first. A window makes a run a part of one.
with recent as (
    select id, ordinal from sluice_state.run
    where sync = %(sync)s and mode = 'full' and status = 'succeeded' and window_start is null and follows is null
    order by ordinal desc limit %(runs)s
)
select shard.key, array_agg(shard.records order by recent.ordinal desc) as records
from recent join sluice_state.shard on shard.run = recent.id
where shard.status = 'succeeded'
group by shard.key

-- name: first_pending
-- The first pending shard of a run.
select key from sluice_state.shard where run = %(run)s and status = 'pending' order by key limit 1

-- name: claim
-- Claim one shard, under a new token and in this release's version; none that a person has stopped.
update sluice_state.shard set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    state_version = greatest(state_version, %(state_version)s),
    attempt = attempt + (not exhausted)::integer,
    stopped_in = null,
    failure_error = null,
    failure_message = null
where run = %(run)s and key = %(key)s and status = any(%(sources)s)
    and stopped_in is distinct from (select clearings from sluice_state.run where id = %(run)s)
returning *

-- name: claim_next
-- Claim the first pending shard, past those that somebody else is just claiming, skipping or planning.
update sluice_state.shard set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    state_version = greatest(state_version, %(state_version)s),
    attempt = attempt + (not exhausted)::integer
where run = %(run)s and status = 'pending' and key = (
    select key from sluice_state.shard where run = %(run)s and status = 'pending' order by key limit 1 for update skip locked
)
returning *

-- name: checkpoint
-- Move the cursor, counters and marks of a shard that still is the caller's.
update sluice_state.shard set
    cursor = %(cursor)s,
    exhausted = %(exhausted)s,
    until = %(until)s,
    supplied_at = %(supplied_at)s,
    high_mark = %(high_mark)s,
    chunks = %(chunks)s,
    pages = %(pages)s,
    records = %(records)s,
    progress_at = now()
where run = %(run)s and key = %(key)s and token = %(token)s and status = any(%(sources)s)
returning *

-- name: succeed
-- Finish a shard that still is the caller's, and that no page follows in, with the mark its transformation has found.
update sluice_state.shard set status = %(status)s, high_mark = %(high_mark)s, progress_at = now()
where run = %(run)s and key = %(key)s and token = %(token)s and status = any(%(sources)s) and exhausted
returning *

-- name: fail
-- Note that a shard that still is the caller's gave up.
update sluice_state.shard set
    status = %(status)s, failure_error = %(failure_error)s, failure_message = %(failure_message)s
where run = %(run)s and key = %(key)s and token = %(token)s and status = any(%(sources)s)
returning *
