-- name: syncs
-- The syncs that have ended runs.
select distinct sync from sluice_state.run where finished_at is not null order by sync

-- name: sweep_call
-- Forget calls to others that nobody will repeat any more.
delete from sluice_state.call
where key in (select key from sluice_state.call where expires_at <= now() order by key limit %(limit)s)

-- name: sweep_lease
-- Take back leases that runs have left behind which are over.
delete from sluice_state.lease where key in (
    select lease.key from sluice_state.lease join sluice_state.run on run.id = lease.owner
    where run.finished_at is not null and lease.expires_at <= now() order by lease.key limit %(limit)s
)

-- name: sweep_breaker
-- Forget how hosts were doing that nobody has asked for long.
delete from sluice_state.breaker where (host, stage) in (
    select host, stage from sluice_state.breaker
    where coalesce(greatest(resting_until, probed_until, (select max(tick) from unnest(ticks) as tick)), '-infinity')
        <= now() - %(quiet)s::interval
    order by host, stage limit %(limit)s
)

-- name: sweep_access_token
-- Forget tokens that are over for long, or that nobody has asked for again.
delete from sluice_state.access_token where client in (
    select client from sluice_state.access_token where coalesce(expires_at, renewed_at) <= now() - %(quiet)s::interval
    order by client limit %(limit)s
)

-- name: sweep_rate
-- Forget when hosts might be asked that nobody has asked for long.
delete from sluice_state.rate where (host, stage) in (
    select host, stage from sluice_state.rate where next_at <= now() - %(quiet)s::interval
    order by host, stage limit %(limit)s
)

-- name: sweep_event
-- Forget the events of runs that ended long ago.
delete from sluice_state.event where (run, seq) in (
    select event.run, event.seq from sluice_state.event join sluice_state.run on run.id = event.run
    where run.finished_at <= now() - run.session_ttl order by event.run, event.seq limit %(limit)s
)

-- name: sweep_progress
-- Forget the progress of runs that ended long ago.
delete from sluice_state.progress where (run, shard) in (
    select progress.run, progress.shard from sluice_state.progress join sluice_state.run on run.id = progress.run
    where run.finished_at <= now() - run.session_ttl order by progress.run, progress.shard limit %(limit)s
)

-- name: due
-- Pointers whose time is over, and what holds them all the same.
-- Held are those that a person has pinned, or that an open dead letter, the rest of the letters of a cause, the newest
-- publication of the sync, one that can be taken back or a pointer that lives names. What was discarded of that rest is told by its
-- rejects alone. A publication is taken back with the spec that it was made with.
with due as materialized (
    select artifact.*, case
        when artifact.pinned then %(pinned)s
        when run.finished_at is null then %(at_work)s
        when artifact.sync = any(%(unknown)s) then %(not_known)s
        when artifact.run = any(%(published)s) and artifact.kind not in ('raw', 'rows', 'rejects') then %(publication)s
        when artifact.kind = 'spec' and exists (
            select from sluice_state.artifact as undo
            where undo.run = artifact.run and undo.kind = 'undo' and (undo.pinned or coalesce(undo.expires_at > now(), true))
        ) then %(undo)s
        when exists (
            select from sluice_state.dead_letter where dead_letter.raw_artifact = artifact.key and dead_letter.status = 'open'
        )
        or exists (select from sluice_state.dead_letter_lines where dead_letter_lines.artifact = artifact.key)
        or exists (
            select from sluice_state.dead_letter_lines as rest where rest.raw_artifact = artifact.key and rest.status = 'open'
        ) then %(letters)s
    end as held
    from sluice_state.artifact join sluice_state.run on run.id = artifact.run
    where artifact.expires_at <= now() and (%(keys)s::text[] is null or artifact.key = any(%(keys)s))
)
select due.*, coalesce(held, case when exists (
    select from sluice_state.artifact as other
    where other.key = due.key and other.id not in (select id from due where held is null)
) then %(shared)s end) as held_by
from due order by key, id

-- name: condemn
-- Let pointers count no more, so that nobody goes on from them while their bytes are removed.
update sluice_state.artifact set superseded_at = now() where id = any(%(ids)s) and superseded_at is null

-- name: hold_runs
-- Keep ended runs from being gone on with, until this transaction ends.
select id from sluice_state.run where id in (select run from sluice_state.artifact where key = any(%(keys)s))
order by id for no key update

-- name: forget
-- Remove the pointers whose bytes are gone.
delete from sluice_state.artifact where id = any(%(ids)s)

-- name: old_runs
-- Ended runs whose time is over, whose artifacts are gone, and which nobody needs, locked.
-- Needed are those that a follower, a watermark, an open dead letter or a publication names. What nothing points to is looked for
-- as long as the run is known.
select id, sync, ordinal from sluice_state.run as old
where old.expires_at <= now()
    and old.finished_at <= now() - %(grace)s::interval
    and old.sync <> all(%(unknown)s)
    and old.id <> all(%(published)s)
    and not exists (select from sluice_state.artifact where artifact.run = old.id)
    and not exists (select from sluice_state.run as follower where follower.follows = old.id)
    and not exists (select from sluice_state.watermark where watermark.run = old.id)
    and not exists (select from sluice_state.dead_letter where dead_letter.run = old.id and dead_letter.status = 'open')
    and not exists (select from sluice_state.dead_letter_lines where dead_letter_lines.run = old.id)
order by old.ordinal limit %(limit)s for update skip locked

-- name: belongings
-- How many rows of each table belong to runs: also the letters that they have closed, and incidents of theirs that are over.
select 'shard' as "table", count(*) as rows from sluice_state.shard where run = any(%(runs)s)
union all select 'review', count(*) from sluice_state.review where run = any(%(runs)s)
union all select 'decision', count(*) from sluice_state.decision join sluice_state.review on review.id = decision.review
    where review.run = any(%(runs)s)
union all select 'dead_letter', count(*) from sluice_state.dead_letter
    where status = 'closed' and coalesce(ended_by, run) = any(%(runs)s)
union all select 'incident', count(*) from sluice_state.incident where ended_at is not null and run = any(%(runs)s)

-- name: rows_of_run
-- All that goes with a run, a row of one table each.
select jsonb_build_object('table', 'run', 'row', to_jsonb(run))::text as line from sluice_state.run where id = %(run)s
union all select jsonb_build_object('table', 'shard', 'row', to_jsonb(shard))::text from sluice_state.shard where run = %(run)s
union all select jsonb_build_object('table', 'review', 'row', to_jsonb(review))::text from sluice_state.review where run = %(run)s
union all select jsonb_build_object('table', 'decision', 'row', to_jsonb(decision))::text
    from sluice_state.decision join sluice_state.review on review.id = decision.review where review.run = %(run)s
union all select jsonb_build_object('table', 'dead_letter', 'row', to_jsonb(dead_letter))::text
    from sluice_state.dead_letter where status = 'closed' and coalesce(ended_by, run) = %(run)s
union all select jsonb_build_object('table', 'incident', 'row', to_jsonb(incident))::text
    from sluice_state.incident where ended_at is not null and run = %(run)s
union all select jsonb_build_object('table', 'event', 'row', to_jsonb(event))::text from sluice_state.event where run = %(run)s

-- name: remove_runs
-- Remove runs with all that belongs to them.
with letters as (
    delete from sluice_state.dead_letter where status = 'closed' and coalesce(ended_by, run) = any(%(runs)s)
), incidents as (
    delete from sluice_state.incident where ended_at is not null and run = any(%(runs)s)
)
delete from sluice_state.run where id = any(%(runs)s)

-- name: told_runs
-- Runs that ended so long ago that their events go, with the numbers of the first and the last of them.
select run.id, run.sync, min(event.seq) as first, max(event.seq) as last
from sluice_state.run join sluice_state.event on event.run = run.id
where run.finished_at <= now() - run.session_ttl
group by run.id, run.sync order by run.id limit %(limit)s

-- name: rows_of_events
-- The events of a run up to one.
select jsonb_build_object('table', 'event', 'row', to_jsonb(event))::text as line from sluice_state.event
where run = %(run)s and seq <= %(last)s order by seq

-- name: remove_events
-- Forget the events of a run up to one.
delete from sluice_state.event where run = %(run)s and seq <= %(last)s

-- name: undoing
-- Publications that runs which have not ended take back.
select distinct sync, undoes as publication from sluice_state.run
where undoes is not null and finished_at is null order by sync, undoes

-- name: silent_runs
-- Runs at work that nobody has heard of for long.
select id from sluice_state.run
where status = any(%(at_work)s) and finished_at is null and created_at <= now() - %(grace)s::interval
    and not exists (
        select from sluice_state.lease where lease.owner = run.id and lease.expires_at > now() - %(grace)s::interval
    )
    and not exists (select from sluice_state.event where event.run = run.id and event.at > now() - %(grace)s::interval)
order by ordinal

-- name: end_silent
-- End a run that is still at work and that still nobody has heard of, its token spent.
update sluice_state.run set
    status = %(status)s,
    token = nextval('sluice_state.token_seq'),
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    finished_at = now()
where id = %(run)s and status = any(%(at_work)s) and not exists (
    select from sluice_state.lease where lease.owner = run.id and lease.expires_at > now() - %(grace)s::interval
)
returning *

-- name: hold_owners
-- Keep runs from being gone on with, until this transaction ends.
select id from sluice_state.run where id = any(%(runs)s) order by id for no key update

-- name: strays
-- Of some objects those that nothing points to, unless a run that ended not long ago may have put them, or one at work.
select found.key, run.id is null as is_strange
from unnest(%(keys)s::text[], %(syncs)s::text[], %(runs)s::text[]) as found (key, sync, run)
    left join sluice_state.run on run.id = found.run and run.sync = found.sync
where (run.id is null or run.finished_at <= now() - %(grace)s::interval)
    and not exists (select from sluice_state.artifact where artifact.key = found.key)
    and not exists (
        select from sluice_state.dead_letter where dead_letter.raw_artifact = found.key and dead_letter.status = 'open'
    )
    and not exists (select from sluice_state.dead_letter_lines where dead_letter_lines.artifact = found.key)
    and not exists (select from sluice_state.dead_letter_lines as rest where rest.raw_artifact = found.key)
