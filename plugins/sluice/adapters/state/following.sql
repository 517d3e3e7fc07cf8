-- name: after
-- The events of a run behind a number, oldest first.
select * from sluice_state.event where run = %(run)s and seq > %(seq)s order by seq limit %(limit)s

-- name: newest
-- The newest events of a run, the newest first.
select * from sluice_state.event where run = %(run)s order by seq desc limit %(limit)s

-- name: standing
-- A run as it stands, and when its first shard was claimed.
select clock_timestamp() as at, run.status, run.step, (
    select event.at from sluice_state.event
    where event.run = run.id and subject = 'shard' and event = 'claim' order by seq limit 1
) as began
from sluice_state.run where run.id = %(run)s

-- name: brought
-- What the shards of a run come to, by status, with what their open chunks are known to hold.
select shard.status, count(*) as shards, sum(shard.pages + coalesce(told.pages, 0))::bigint as pages,
    sum(shard.records + coalesce(told.records, 0))::bigint as records
from sluice_state.shard left join sluice_state.progress as told
    on told.run = shard.run and told.shard = shard.key and told.token = shard.token and told.chunk = shard.chunks
    and shard.status = 'running' and not shard.exhausted
where shard.run = %(run)s group by shard.status
