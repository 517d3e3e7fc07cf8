-- name: of_sync
-- The watermark of each shard of a sync that has one.
select shard, value from sluice_state.watermark where sync = %(sync)s order by shard

-- name: advance
-- Move watermarks to what a run published, but for those that a younger run has moved.
insert into sluice_state.watermark as held (sync, shard, value, run, token)
select %(sync)s, mark.key, mark.value, %(run)s, %(token)s
from jsonb_each_text(%(marks)s) as mark order by mark.key collate "C"
on conflict (sync, shard) do update set
    value = excluded.value, run = excluded.run, token = excluded.token, advanced_at = excluded.advanced_at
where held.token <= excluded.token
returning shard
