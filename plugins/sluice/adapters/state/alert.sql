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
-- Lock a run, so that nobody else tells of it meanwhile, and return its status.
select status from sluice_state.run where id = %(run)s for no key update

-- name: was_told
-- Whether a run's journal tells of an alert.
select from sluice_state.event where run = %(run)s and subject = 'run' and event = %(event)s limit 1
