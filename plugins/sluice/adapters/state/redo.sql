-- name: fetch_again
-- Begin a shard again in an epoch of its own, its token spent; its watermark, the lower bound of its requests, stays.
update sluice_state.shard set
    status = %(status)s,
    epoch = epoch + 1,
    cursor = null,
    exhausted = false,
    until = null,
    supplied_at = null,
    high_mark = null,
    chunks = 0,
    pages = 0,
    records = 0,
    token = nextval('sluice_state.token_seq'),
    stopped_in = null,
    failure_error = null,
    failure_message = null
where run = %(run)s and key = %(key)s and status = any(%(sources)s)
returning *

-- name: map_again
-- Let a fetched shard be mapped again, its token spent; what was fetched stays.
update sluice_state.shard set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    failure_error = null,
    failure_message = null
where run = %(run)s and key = %(key)s and status = any(%(sources)s)
returning *

-- name: supersede_shard
-- Let all that was fetched of a shard, and made of it, count no more.
update sluice_state.artifact set superseded_at = now() where run = %(run)s and shard = %(key)s and superseded_at is null

-- name: supersede_mapped
-- Let what some chunks of a shard were mapped to count no more.
update sluice_state.artifact set superseded_at = now()
where run = %(run)s and shard = %(key)s and kind in ('rows', 'rejects') and seq = any(%(chunks)s) and superseded_at is null

-- name: supersede_diffs
-- Let the diffs of a run count no more, and with them the reviews they are of.
update sluice_state.artifact set superseded_at = now() where run = %(run)s and kind = 'diff' and superseded_at is null
