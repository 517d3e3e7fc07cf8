-- name: failed_in_a_row
-- How many runs of a run's sync, up to it, have failed or were partial since the last one that succeeded.
-- One that was taken over is answered for by its successor; one that takes a publication back, or dead letters up, says nothing
-- of the supplier.
with present as (select sync, ordinal from sluice_state.run where id = %(run)s)
select count(*) as runs
from present join sluice_state.run as failed on failed.sync = present.sync and failed.ordinal <= present.ordinal
where failed.follows is null and failed.mode not in ('rollback', 'redrive') and failed.status = any(%(failures)s)
    and failed.failure_error is distinct from %(taken_over)s and failed.ordinal > coalesce((
        select max(good.ordinal) from sluice_state.run as good
        where good.sync = present.sync and good.ordinal <= present.ordinal and good.follows is null and good.mode not in ('rollback', 'redrive')
            and good.status = %(success)s
    ), 0)

-- name: lock_run
-- Lock a run, whose journal will tell of an incident.
select from sluice_state.run where id = %(run)s for no key update

-- name: raise
-- Begin a sync's incident, or let it reach the higher level; no row if it has reached that one already, or a later run has succeeded.
insert into sluice_state.incident as held (sync, level, runs, run)
select %(sync)s, %(level)s, %(runs)s, %(run)s
where not exists (
    select from sluice_state.run as present join sluice_state.run as good on good.sync = present.sync
    where present.id = %(run)s and good.ordinal > present.ordinal and good.follows is null
        and good.mode not in ('rollback', 'redrive') and good.status = %(success)s
)
on conflict (sync) where ended_at is null
do update set level = excluded.level, runs = excluded.runs, run = excluded.run
where held.level <> excluded.level and excluded.level = %(higher)s
returning *

-- name: recover
-- End a sync's incident, unless a run has failed that is later than the one that succeeded.
update sluice_state.incident set ended_at = clock_timestamp()
where sync = %(sync)s and ended_at is null and not exists (
    select from sluice_state.run as present join sluice_state.run as failed on failed.sync = present.sync
    where present.id = %(run)s and failed.ordinal > present.ordinal and failed.follows is null
        and failed.mode not in ('rollback', 'redrive') and failed.status = any(%(failures)s)
        and failed.failure_error is distinct from %(taken_over)s
)
returning *

-- name: newest
-- A sync's incident, or the one that was over last.
select * from sluice_state.incident where sync = %(sync)s order by id desc limit 1
