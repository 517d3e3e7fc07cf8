-- name: lock_runs
-- Lock runs, in an order that all keep, so that nobody enters them meanwhile; return the tokens of those that are there.
select id, token from sluice_state.run where id = any(%(runs)s) order by id for no key update

-- name: forget_expired
-- Remove a call that counts as absent.
delete from sluice_state.call where key = %(key)s and expires_at <= clock_timestamp()

-- name: note
-- Note a call, and that it is begun if it is; no row if its result is known already.
insert into sluice_state.call as held (key, sync, run, subject, name, begun, expires_at)
values (%(key)s, %(sync)s, %(run)s, %(subject)s, %(name)s, %(begun)s, clock_timestamp() + %(ttl)s::interval)
on conflict (key) do update set begun = held.begun + excluded.begun
where held.accepted is null
returning *

-- name: get
-- One call.
select * from sluice_state.call where key = %(key)s

-- name: answer
-- Keep the first result of a call.
update sluice_state.call set
    accepted = %(accepted)s, answer = %(answer)s, answered_at = clock_timestamp(), trouble = null
where key = %(key)s and accepted is null
returning *

-- name: leave
-- Note why a try brought no result, unless another one has brought one.
update sluice_state.call set trouble = %(trouble)s where key = %(key)s and accepted is null
returning *

-- name: of_run
-- The calls of a run that have not expired, oldest first.
select * from sluice_state.call where run = %(run)s and expires_at > clock_timestamp() order by noted_at, key

-- name: left
-- The calls without a result whose run is over or gone, oldest first.
select call.* from sluice_state.call left join sluice_state.run on run.id = call.run
where call.sync = %(sync)s and call.accepted is null and call.expires_at > clock_timestamp()
    and (run.id is null or run.status = any(%(final)s))
order by call.noted_at, call.key
