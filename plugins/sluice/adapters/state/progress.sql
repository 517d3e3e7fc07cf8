-- name: tell
-- Keep what a shard's open chunk holds, if the shard still is the caller's.
insert into sluice_state.progress (run, shard, token, chunk, pages, records, bytes)
select run, key, token, %(chunk)s, %(pages)s, %(records)s, %(bytes)s
from sluice_state.shard where run = %(run)s and key = %(shard)s and token = %(token)s
on conflict (run, shard) do update set
    token = excluded.token,
    chunk = excluded.chunk,
    pages = excluded.pages,
    records = excluded.records,
    bytes = excluded.bytes,
    told_at = excluded.told_at

-- name: of_run
-- What was told last of each shard of a run.
select run, shard, token, chunk, pages, records, bytes from sluice_state.progress where run = %(run)s
