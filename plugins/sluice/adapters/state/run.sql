-- name: insert
-- Admit a run, with a token of its own; no row if there is one of that id.
insert into sluice_state.run (
    id, sync, stage, tenant, request_key, mode, window_start, window_end, shards, review_mode, force, undoes, replays, redrives,
    spec_hash, transformer_version, dag_id, dag_run_id, status, step, token, lease_ttl, state_ttl, session_ttl, state_version, created_at
) values (
    %(id)s, %(sync)s, %(stage)s, %(tenant)s, %(request_key)s, %(mode)s, %(window_start)s, %(window_end)s, %(shards)s,
    %(review_mode)s, %(force)s, %(undoes)s, %(replays)s, %(redrives)s, %(spec_hash)s, %(transformer_version)s, %(dag_id)s, %(dag_run_id)s, %(status)s, %(step)s,
    nextval('sluice_state.token_seq'), %(lease_ttl)s, %(state_ttl)s, %(session_ttl)s, %(state_version)s, %(created_at)s
)
on conflict (id) do nothing
returning *

-- name: get
-- One run.
select * from sluice_state.run where id = %(id)s

-- name: moment
-- What time it is, and for how long a run has waited for others.
select clock_timestamp() as now, coalesce(clock_timestamp() - follows_since, interval '0') as waited
from sluice_state.run where id = %(id)s

-- name: newest_at_work
-- The newest other run of a request that has worked itself, and whether a run of the sync has published since.
-- Since its end, if it succeeded; else since its admission, after which it fetched.
select worked.*, exists (
    select from sluice_state.run as other
    where other.sync = worked.sync and other.id <> worked.id
        and other.step in ('publish', 'settle') and other.status in ('running', 'succeeded', 'partial')
        and case
            when worked.status = 'succeeded' then coalesce(other.finished_at, 'infinity') > worked.finished_at
            else other.ordinal > worked.ordinal
        end
) as is_outrun
from sluice_state.run as worked
where worked.request_key = %(request_key)s and worked.id <> %(id)s and worked.follows is null
order by worked.ordinal desc limit 1

-- name: followers
-- The runs that wait for a run, oldest first.
select * from sluice_state.run where follows = %(run)s and status = %(waiting)s order by ordinal

-- name: recent
-- The newest runs first, of one sync or of all, in some statuses or in any.
select * from sluice_state.run
where (%(sync)s::text is null or sync = %(sync)s)
    and (cardinality(%(statuses)s::text[]) = 0 or status = any(%(statuses)s))
    and (%(before)s::text is null or ordinal < (select ordinal from sluice_state.run where id = %(before)s))
order by ordinal desc limit %(limit)s

-- name: followed_by
-- The runs that take the outcome of one, the newest first.
select * from sluice_state.run where follows = %(run)s order by ordinal desc limit %(limit)s

-- name: fetched_within
-- The runs of a sync that have asked the supplier, and were begun within a window, oldest first.
select * from sluice_state.run
where sync = %(sync)s and mode = any(%(fetching)s) and follows is null
    and created_at >= %(window_start)s and created_at < %(window_end)s
order by ordinal

-- name: asked_within
-- The runs of a sync in some modes whose windows lie within a span of time, the newest first.
select * from sluice_state.run
where sync = %(sync)s and mode = any(%(modes)s) and window_start >= %(window_start)s and window_end <= %(window_end)s
order by ordinal desc

-- name: newer_than
-- The runs of a sync whose data is newer than that of a run, or of unknown age: as old as the newest run that has fetched of it.
with aged as (
    select asked.id, case
        when asked.mode <> 'replay' then asked.ordinal
        when asked.replays is not null then (select fetched.ordinal from sluice_state.run as fetched where fetched.id = asked.replays)
        else (
            select max(fetched.ordinal) from sluice_state.run as fetched
            where fetched.sync = asked.sync and fetched.mode = any(%(fetching)s) and fetched.follows is null
                and fetched.created_at >= asked.window_start and fetched.created_at < asked.window_end
        )
    end as age
    from sluice_state.run as asked
    where asked.sync = %(sync)s and asked.mode <> 'rollback' and asked.follows is null
)
select other.id from aged as other, aged as own
where own.id = %(run)s and other.id <> own.id and (own.age is null or other.age is null or other.age > own.age)
order by other.id

-- name: readmit
-- Make a run that follows, or has ended as a follower, one that nobody has worked on.
update sluice_state.run set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    lease_ttl = %(lease_ttl)s,
    follows = null,
    follows_since = null,
    failure_error = null,
    failure_message = null,
    finished_at = null
where id = %(id)s and status = any(%(sources)s)
returning *

-- name: follow
-- Let a run wait for the owner of its request's flight; the time it waits is counted over all of them.
update sluice_state.run set
    status = %(status)s,
    follows = %(owner)s,
    follows_since = coalesce(follows_since, clock_timestamp())
where id = %(id)s and status = any(%(sources)s)
returning *

-- name: end_without_work
-- End a run with what another one has come to.
update sluice_state.run set
    status = %(status)s,
    follows = %(follows)s,
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = now()
where id = %(id)s and status = any(%(sources)s)
returning *

-- name: enter
-- Put a run that may go on at a step, under a new token and in this release's version.
update sluice_state.run set
    status = %(status)s,
    step = %(step)s,
    token = nextval('sluice_state.token_seq'),
    lease_ttl = %(lease_ttl)s,
    state_version = greatest(state_version, %(state_version)s),
    follows = null,
    follows_since = null,
    failure_error = null,
    failure_message = null,
    finished_at = null
where id = %(id)s and status = any(%(sources)s)
returning *

-- name: reach
-- Put a run that runs at its next step, which nobody has entered yet.
update sluice_state.run set step = %(step)s where id = %(id)s and status = 'running'

-- name: next_token
-- Give a run that runs a newer token.
update sluice_state.run set token = nextval('sluice_state.token_seq') where id = %(id)s and status = 'running' returning *

-- name: end
-- Move a run that still is the caller's to another status.
update sluice_state.run set
    status = %(status)s,
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = case when %(is_final)s then now() end
where id = %(id)s and token = %(token)s and status = any(%(sources)s)
returning *

-- name: end_dead
-- End the runs of a request that were working when their lease ran out, and spend their tokens.
update sluice_state.run set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = now()
where request_key = %(request_key)s and id <> %(successor)s and status = any(%(sources)s)
returning *
