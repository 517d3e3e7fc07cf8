-- name: hold
-- Take the request's flight for a run, or extend it; no row if another run has it and its lease has not run out.
insert into sluice_state.lease as held (key, owner, token, expires_at, progress_at)
select run.request_key, run.id, nextval('sluice_state.token_seq'),
    clock_timestamp() + coalesce(%(ttl)s::interval, run.lease_ttl), clock_timestamp()
from sluice_state.run where run.id = %(run)s
on conflict (key) do update set
    owner = excluded.owner,
    token = case when held.owner = excluded.owner then held.token else excluded.token end,
    expires_at = case when held.owner = excluded.owner then greatest(excluded.expires_at, held.kept_until)
        else excluded.expires_at end,
    kept_until = case when held.owner = excluded.owner then held.kept_until end,
    progress_at = excluded.progress_at
where held.owner = excluded.owner or held.expires_at <= clock_timestamp()
returning held.owner

-- name: hold_out
-- Keep the flight of a run for so long without a sign of life, whatever shorter time is said after that.
update sluice_state.lease set
    kept_until = greatest(kept_until, clock_timestamp() + %(silence)s::interval),
    expires_at = greatest(expires_at, clock_timestamp() + %(silence)s::interval)
where owner = %(run)s

-- name: holder
-- Who has the flight of a run's request.
select run.id as run, lease.owner, lease.expires_at
from sluice_state.run left join sluice_state.lease on lease.key = run.request_key where run.id = %(run)s

-- name: lock
-- Lock the flight of a run's request, whoever has it; where nobody has, one that has run out is made for that.
insert into sluice_state.lease as held (key, owner, token, expires_at, progress_at)
select request_key, id, nextval('sluice_state.token_seq'), '-infinity', clock_timestamp() from sluice_state.run where id = %(run)s
on conflict (key) do update set key = held.key
returning held.owner

-- name: unlock
-- Remove the flight that was made to be locked.
delete from sluice_state.lease where owner = %(run)s and expires_at = '-infinity'

-- name: over
-- Why a run is over that a person has called off, or that another has taken over from; no row for any other.
select called_off_in = clearings as is_called_off, failure_message from sluice_state.run
where id = %(run)s and (called_off_in = clearings or (failure_error = %(error)s and follows is null))

-- name: release
-- Give the flight back, if the run has it.
delete from sluice_state.lease where owner = %(run)s

-- name: release_unless_running
-- Give the flight back, if the run has it and does not run.
delete from sluice_state.lease where owner = %(run)s
    and not exists (select from sluice_state.run where id = %(run)s and status = 'running')

-- name: run_token
-- The present token of a run.
select token from sluice_state.run where id = %(run)s

-- name: shard_token
-- The present token of a shard.
select token from sluice_state.shard where run = %(run)s and key = %(shard)s
