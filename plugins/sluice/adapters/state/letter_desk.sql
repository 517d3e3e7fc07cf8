-- name: groups
-- Open letters by cause, those causes first that have most objects.
with letters as (
    select sync, error, field, count(*) as letters, max(attempts) as attempts, min(first_seen) as first_seen,
        max(last_seen) as last_seen, max(id) as newest
    from sluice_state.dead_letter
    where status = 'open' and (%(sync)s::text is null or sync = %(sync)s) group by sync, error, field
), rest as (
    select sync, error, field, sum(upper(span) - lower(span)) as objects, min(seen_at) as first_seen, max(seen_at) as last_seen,
        min(message) as sample
    from sluice_state.dead_letter_lines, unnest(lines) as span
    where status = 'open' and (%(sync)s::text is null or sync = %(sync)s) group by sync, error, field
), found as (
    select sync, error, field, coalesce(max(letters), 0) as letters,
        coalesce(max(letters), 0) + coalesce(max(objects), 0) as objects, max(attempts) as attempts,
        min(first_seen) as first_seen, max(last_seen) as last_seen, max(newest) as newest, min(sample) as sample
    from (
        select sync, error, field, letters, null::bigint as objects, attempts, first_seen, last_seen, newest, null as sample
        from letters
        union all
        select sync, error, field, null, objects, 1, first_seen, last_seen, null, sample from rest
    ) as either
    group by sync, error, field
)
select found.sync, found.error, found.field, letters, objects, found.attempts, found.first_seen, found.last_seen,
    coalesce(dead_letter.message, sample) as sample
from found left join sluice_state.dead_letter on dead_letter.id = newest
order by found.sync, objects desc, found.error, found.field

-- name: get
-- One letter, whatever has become of it.
select * from sluice_state.dead_letter where id = %(id)s

-- name: of_object
-- The letters of an object, the newest first.
select * from sluice_state.dead_letter where sync = %(sync)s and object_key = %(key)s order by id desc limit %(limit)s

-- name: selected
-- Open letters by number or cause, the newest first.
select * from sluice_state.dead_letter
where sync = %(sync)s and status = 'open'
    and (cardinality(%(ids)s::bigint[]) = 0 or id = any(%(ids)s))
    and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
    and (%(before)s::bigint is null or id < %(before)s)
order by id desc limit %(limit)s

-- name: discard
-- Give letters up.
update sluice_state.dead_letter set status = 'discarded', ended_at = now(), ended_by = %(by)s, reason = %(reason)s
where sync = %(sync)s and status = 'open'
    and (cardinality(%(ids)s::bigint[]) = 0 or id = any(%(ids)s))
    and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))

-- name: discard_lines
-- Give up what has no letter of its own.
with given_up as (
    update sluice_state.dead_letter_lines set status = 'discarded', ended_at = now(), ended_by = %(by)s, reason = %(reason)s
    where sync = %(sync)s and status = 'open' and cardinality(%(ids)s::bigint[]) = 0
        and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
    returning lines
)
select coalesce(sum(upper(span) - lower(span)), 0)::bigint as objects from given_up, unnest(lines) as span
