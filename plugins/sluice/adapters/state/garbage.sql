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

-- name: expired
-- Pointers whose time is over, whose runs have ended, and whose bytes nobody wants.
-- Wanted are those that a person has pinned, or that an open dead letter, the rest of the letters of a cause, the newest
-- publication of the sync or a pointer that lives names. What was discarded of that rest is told by its rejects alone.
with expired as materialized (
    select artifact.* from sluice_state.artifact join sluice_state.run on run.id = artifact.run
    where artifact.expires_at <= now()
        and not artifact.pinned
        and run.finished_at is not null
        and artifact.sync <> all(%(unknown)s)
        and not (artifact.run = any(%(published)s) and artifact.kind not in ('raw', 'rows', 'rejects'))
        and not exists (
            select from sluice_state.dead_letter where dead_letter.raw_artifact = artifact.key and dead_letter.status = 'open'
        )
        and not exists (select from sluice_state.dead_letter_lines where dead_letter_lines.artifact = artifact.key)
        and not exists (
            select from sluice_state.dead_letter_lines as rest where rest.raw_artifact = artifact.key and rest.status = 'open'
        )
        and (%(keys)s::text[] is null or artifact.key = any(%(keys)s))
)
select * from expired
where not exists (
    select from sluice_state.artifact as other
    where other.key = expired.key and other.id not in (select id from expired)
)
order by key, id

-- name: condemn
-- Let pointers count no more, so that nobody goes on from them while their bytes are removed.
update sluice_state.artifact set superseded_at = now() where id = any(%(ids)s) and superseded_at is null

-- name: hold_runs
-- Keep ended runs from being gone on with, until this transaction ends.
select id from sluice_state.run where id in (select run from sluice_state.artifact where key = any(%(keys)s))
order by id for share

-- name: forget
-- Remove the pointers whose bytes are gone.
delete from sluice_state.artifact where id = any(%(ids)s)

-- name: sweep_run
-- Remove ended runs whose time is over, whose artifacts are gone, and which nobody needs, with all that belongs to them.
-- The letters that they have closed, and the incidents they were told of that are over, are among it. Needed are those that a follower, a watermark, an open dead letter or the newest
-- publication of a sync names.
with gone as materialized (
    select id from sluice_state.run as old
    where old.expires_at <= now()
        and old.sync <> all(%(unknown)s)
        and old.id <> all(%(published)s)
        and not exists (select from sluice_state.artifact where artifact.run = old.id)
        and not exists (select from sluice_state.run as follower where follower.follows = old.id)
        and not exists (select from sluice_state.watermark where watermark.run = old.id)
        and not exists (select from sluice_state.dead_letter where dead_letter.run = old.id and dead_letter.status = 'open')
        and not exists (select from sluice_state.dead_letter_lines where dead_letter_lines.run = old.id)
    order by old.ordinal limit %(limit)s for update
), letters as (
    delete from sluice_state.dead_letter where status = 'closed' and coalesce(ended_by, run) in (select id from gone)
), incidents as (
    delete from sluice_state.incident where ended_at is not null and run in (select id from gone)
)
delete from sluice_state.run where id in (select id from gone)
