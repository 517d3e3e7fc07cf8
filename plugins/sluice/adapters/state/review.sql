-- name: insert
-- Keep a review; no row if there is one of that id.
insert into sluice_state.review (
    id, run, sync, digest, figures, reasons, checks, verdict, diff, evidence, report, state_version, created_at
)
values (
    %(id)s, %(run)s, %(sync)s, %(digest)s, %(figures)s, %(reasons)s, %(checks)s, %(verdict)s, %(diff)s, %(evidence)s, %(report)s,
    %(state_version)s, %(created_at)s
)
on conflict (id) do nothing
returning id

-- name: of_run
-- All reviews of a run, the newest first.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where review.run = %(run)s order by ordinal desc

-- name: waiting_of
-- The reviews of some runs that wait, locked, oldest first.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where run = any(%(runs)s) and verdict = any(%(sources)s) order by ordinal for update of review

-- name: lock_older
-- Lock the runs of a sync that were admitted before one and whose reviews wait, the newest first, before those reviews.
select older.* from sluice_state.run older
join sluice_state.run on run.id = %(run)s and run.sync = older.sync and run.ordinal > older.ordinal
where exists (select from sluice_state.review where review.run = older.id and verdict = any(%(sources)s))
order by older.ordinal desc for update of older

-- name: watermarks
-- From where on the shards of some runs were asked for.
select run, key, watermark from sluice_state.shard where run = any(%(runs)s)

-- name: supersede
-- Let a newer review take the place of some that wait.
update sluice_state.review set verdict = %(verdict)s, superseded_by = %(successor)s
where id = any(%(ids)s) and verdict = any(%(sources)s)
returning id, sync, run, verdict

-- name: superseded_by
-- The reviews whose place one has taken.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where superseded_by = %(successor)s order by ordinal

-- name: lock_run
-- Lock the run of a review, before the review itself.
select run.id from sluice_state.run where id = (select run from sluice_state.review where id = %(id)s) for update

-- name: decide
-- Move the verdict of a review that waits.
update sluice_state.review set verdict = %(verdict)s where id = %(id)s and verdict = any(%(sources)s) returning id

-- name: insert_decision
-- Keep the decision about a review.
insert into sluice_state.decision (review, choice, decided_by, via, comment, deletes_at_most, at)
values (%(review)s, %(choice)s, %(by)s, %(via)s, %(comment)s, %(deletes_at_most)s, %(at)s)

-- name: get
-- One review and the decision about it.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id where review.id = %(id)s

-- name: latest
-- The newest review of a run.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where review.run = %(run)s order by ordinal desc limit 1

-- name: waiting
-- The reviews that wait for a decision, oldest first.
select review.*, choice, decided_by, via, comment, deletes_at_most, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where verdict in ('needs-human', 'blocked') and (%(sync)s::text is null or sync = %(sync)s) order by ordinal

-- name: count_waiting
-- How many reviews wait for a decision.
select count(*) as reviews from sluice_state.review where verdict in ('needs-human', 'blocked')
