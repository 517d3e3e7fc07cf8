-- name: note
-- Note what somebody has done.
insert into sluice_state.audit (actor, via, act, sync, run, subject, reason, facts)
values (%(actor)s, %(via)s, %(act)s, %(sync)s, %(run)s, %(subject)s, %(reason)s, %(facts)s)

-- name: of_run
-- Whether anything is noted of a run.
select from sluice_state.audit where run = %(run)s limit 1

-- name: of
-- The newest entries first, of one sync, of one run or of all.
select * from sluice_state.audit
where (%(sync)s::text is null or sync = %(sync)s) and (%(run)s::text is null or run = %(run)s)
order by id desc limit %(limit)s
