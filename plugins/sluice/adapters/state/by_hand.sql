-- name: lock_run
-- A run, as nobody can change it meanwhile.
select * from sluice_state.run where id = %(run)s for update

-- name: is_stopped
-- Whether a person has stopped a shard since the DagRun was cleared last.
select shard.stopped_in = run.clearings as is_stopped
from sluice_state.shard join sluice_state.run on run.id = shard.run where shard.run = %(run)s and shard.key = %(key)s

-- name: skip
-- Let a run do without a shard, its token spent.
update sluice_state.shard set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    stopped_in = null,
    failure_error = null,
    failure_message = null
where run = %(run)s and key = %(key)s and status = any(%(sources)s)
returning *

-- name: stop
-- Let a shard fail where it stands, its token spent, until its DagRun is cleared.
update sluice_state.shard set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    stopped_in = run.clearings,
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s
from sluice_state.run
where run.id = shard.run and shard.run = %(run)s and key = %(key)s and shard.status = any(%(sources)s)
returning shard.*

-- name: is_cleared
-- Whether the DagRun of a run was cleared since a person has cancelled it.
select called_off_in < clearings as is_cleared from sluice_state.run where id = %(run)s

-- name: cancel_again
-- End a run that is cancelled once more, its token spent, until its DagRun is cleared again.
update sluice_state.run set
    token = nextval('sluice_state.token_seq'),
    called_off_in = clearings,
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = now()
where id = %(id)s and status = %(status)s
returning *

-- name: cancel
-- End a run, its token spent, until its DagRun is cleared; it follows nobody any more.
update sluice_state.run set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    called_off_in = clearings,
    follows = null,
    follows_since = null,
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = now()
where id = %(id)s and status = any(%(sources)s)
returning *

-- name: waiting_reviews
-- The reviews of a run that wait for a person, locked.
select id, clock_timestamp() as now from sluice_state.review where run = %(run)s and verdict = any(%(sources)s) order by ordinal for update

-- name: leases
-- Who has which flight, by sync and key.
select lease.*, run.sync, run.stage, run.status, lease.expires_at <= clock_timestamp() as is_expired
from sluice_state.lease join sluice_state.run on run.id = lease.owner order by run.sync, lease.key

-- name: lock_lease
-- One flight, as nobody can change it meanwhile.
select lease.*, run.sync, run.stage, run.status, lease.expires_at <= clock_timestamp() as is_expired,
    clock_timestamp() - lease.progress_at as silence
from sluice_state.lease join sluice_state.run on run.id = lease.owner where lease.key = %(key)s for update of lease

-- name: is_request
-- Whether any run was of that request.
select from sluice_state.run where request_key = %(key)s limit 1

-- name: fence_run
-- Spend the token of a run, and those of its shards.
with spent as (
    update sluice_state.shard set token = nextval('sluice_state.token_seq') where run = %(run)s
)
update sluice_state.run set token = nextval('sluice_state.token_seq') where id = %(run)s

-- name: note_clearing
-- Note how often the DagRun of a run has been cleared.
update sluice_state.run set clearings = %(times)s where id = %(run)s and clearings < %(times)s
