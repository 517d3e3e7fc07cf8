-- name: reserve
-- Take the next free slot, unless it lies too far off. The row stays locked until the transaction ends: slots never overlap.
insert into sluice_state.rate as held (host, stage, next_at)
values (%(host)s, %(stage)s, clock_timestamp() + %(spacing)s::interval)
on conflict (host, stage) do update set
    next_at = greatest(held.next_at, clock_timestamp()) + %(spacing)s::interval
where held.next_at <= clock_timestamp() + %(patience)s::interval
returning next_at - %(spacing)s::interval - clock_timestamp() as wait

-- name: queue
-- How far off the next free slot is.
select next_at - clock_timestamp() as wait from sluice_state.rate where host = %(host)s and stage = %(stage)s
