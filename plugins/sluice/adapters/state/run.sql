-- name: insert
-- Admit a run, with a token of its own; no row if there is one of that id.
insert into sluice_state.run (
    id, sync, stage, tenant, request_key, mode, window_start, window_end, shards, review_mode, force, spec_hash,
    transformer_version, dag_id, dag_run_id, status, step, token, lease_ttl, state_version, created_at
) values (
    %(id)s, %(sync)s, %(stage)s, %(tenant)s, %(request_key)s, %(mode)s, %(window_start)s, %(window_end)s, %(shards)s,
    %(review_mode)s, %(force)s, %(spec_hash)s, %(transformer_version)s, %(dag_id)s, %(dag_run_id)s, %(status)s, %(step)s,
    nextval('sluice_state.token_seq'), %(lease_ttl)s, %(state_version)s, %(created_at)s
)
on conflict (id) do nothing
returning *

-- name: get
-- One run.
select * from sluice_state.run where id = %(id)s

-- name: newest_before
-- The run of the same request that was admitted last before this one, unless a later run of its sync has published since.
select * from (
    select * from sluice_state.run
    where request_key = %(request_key)s and ordinal < (select ordinal from sluice_state.run where id = %(id)s)
    order by ordinal desc limit 1
) as earlier
where not exists (
    select from sluice_state.run as later
    where later.sync = earlier.sync and later.ordinal > earlier.ordinal and later.status in ('succeeded', 'partial')
)

-- name: recent
-- The newest runs first, of one sync or of all, in some statuses or in any.
select * from sluice_state.run
where (%(sync)s::text is null or sync = %(sync)s)
    and (cardinality(%(statuses)s::text[]) = 0 or status = any(%(statuses)s))
order by ordinal desc limit %(limit)s

-- name: enter
-- Put a run that may go on at a step, under a new token.
update sluice_state.run set
    status = %(status)s,
    step = %(step)s,
    token = nextval('sluice_state.token_seq'),
    lease_ttl = %(lease_ttl)s,
    failure_error = null,
    failure_message = null,
    finished_at = null
where id = %(id)s and status = any(%(sources)s)
returning *

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
