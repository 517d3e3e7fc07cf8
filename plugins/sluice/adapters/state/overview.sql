-- name: syncs
-- Some syncs at a glance: newest runs, the last good one, what was published last, and what waits for a person.
-- Of what was published, only as many runs are looked at as a page may wait for.
select asked.sync, newest.runs, newest.stage, incident.level as alert, good.created_at as good_at, published.published,
    coalesce(waiting.reviews, 0) as reviews, coalesce(letters.letters, 0) + coalesce(rest.objects, 0) as letters
from unnest(%(syncs)s::text[]) as asked (sync)
left join lateral (
    select json_agg(json_build_object(
            'id', id, 'status', status, 'step', step, 'mode', mode, 'created_at', created_at, 'finished_at', finished_at
        ) order by ordinal desc) as runs,
        (array_agg(stage order by ordinal desc))[1] as stage
    from (
        select id, status, step, mode, created_at, finished_at, ordinal, stage from sluice_state.run
        where run.sync = asked.sync order by ordinal desc limit %(runs)s
    ) as recent
) as newest on true
left join lateral (
    select created_at from sluice_state.run
    where run.sync = asked.sync and run.status = 'succeeded' and run.mode <> 'rollback' order by ordinal desc limit 1
) as good on true
left join sluice_state.incident on incident.sync = asked.sync and incident.ended_at is null
left join lateral (
    select jsonb_build_object(
        'run', recent.id, 'review', review.id, 'outcomes', review.figures -> 'outcomes', 'at', recent.finished_at
    ) as published
    from (
        select id, ordinal, finished_at from sluice_state.run
        where run.sync = asked.sync and run.status in ('succeeded', 'partial') and run.follows is null
        order by ordinal desc limit %(looked_at)s
    ) as recent
    join lateral (
        select id, figures, verdict from sluice_state.review where review.run = recent.id order by ordinal desc limit 1
    ) as review on review.verdict = any(%(approvals)s)
    where exists (
        select from jsonb_each_text(review.figures -> 'outcomes') as counted (outcome, objects)
        where outcome = any(%(writing)s) and objects::bigint > 0
    )
    order by recent.ordinal desc limit 1
) as published on true
left join (
    select sync, count(*) as reviews from sluice_state.review where verdict in ('needs-human', 'blocked') group by sync
) as waiting on waiting.sync = asked.sync
left join (
    select sync, count(*) as letters from sluice_state.dead_letter where status = 'open' group by sync
) as letters on letters.sync = asked.sync
left join (
    select sync, sum(upper(span) - lower(span)) as objects
    from sluice_state.dead_letter_lines, unnest(lines) as span where status = 'open' group by sync
) as rest on rest.sync = asked.sync
order by asked.sync

-- name: resting
-- The stages whose workers leave a supplier alone, each until the last of them is asked again.
select stage, max(resting_until) as until from sluice_state.breaker where resting_until is not null group by stage order by stage
