-- name: look
-- A breaker as it stands; one of which nothing was counted yet has neither tries nor a rest.
select moment.at, tries, failures, resting_until, probed_until, reason
from (select clock_timestamp() as at) as moment left join sluice_state.breaker on host = %(host)s and stage = %(stage)s

-- name: count
-- Add tries to the present twentieth of the window, and forget those of before the window.
insert into sluice_state.breaker as held (host, stage, ticks, tries, failures)
values (
    %(host)s, %(stage)s, array[date_bin(%(window)s::interval / 20, clock_timestamp(), timestamptz 'epoch')],
    array[%(tries)s::bigint], array[%(failures)s::bigint]
)
on conflict (host, stage) do update set (ticks, tries, failures) = (
    select array_agg(tick order by tick), array_agg(tries order by tick), array_agg(failures order by tick)
    from (
        select tick, sum(tries)::bigint as tries, sum(failures)::bigint as failures
        from unnest(
            held.ticks || excluded.ticks, held.tries || excluded.tries, held.failures || excluded.failures
        ) as counted (tick, tries, failures)
        where tick > excluded.ticks[1] - %(window)s::interval
        group by tick
    ) as recent
)
returning clock_timestamp() as at, tries, failures, resting_until, probed_until, reason

-- name: open
-- Leave the supplier alone: a closed breaker opens; one that is probed opens again, if the probe is the caller's.
update sluice_state.breaker set
    resting_until = clock_timestamp() + %(open_for)s::interval, probed_until = null, reason = %(reason)s
where host = %(host)s and stage = %(stage)s
    and (resting_until is null) = (%(probe)s::timestamptz is null) and probed_until is not distinct from %(probe)s::timestamptz
returning clock_timestamp() as at, tries, failures, resting_until, probed_until, reason

-- name: claim_probe
-- Let one try through after a rest, unless somebody makes it already.
update sluice_state.breaker set probed_until = clock_timestamp() + %(within)s::interval
where host = %(host)s and stage = %(stage)s and resting_until <= clock_timestamp()
    and (probed_until is null or probed_until <= clock_timestamp())
returning clock_timestamp() as at, tries, failures, resting_until, probed_until, reason

-- name: close
-- Let all tries pass again, counting anew, if the probe is the caller's.
update sluice_state.breaker set
    resting_until = null, probed_until = null, reason = null, ticks = '{}', tries = '{}', failures = '{}'
where host = %(host)s and stage = %(stage)s and probed_until = %(probe)s::timestamptz
returning clock_timestamp() as at, tries, failures, resting_until, probed_until, reason
