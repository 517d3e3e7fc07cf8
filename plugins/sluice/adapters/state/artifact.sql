-- name: put
-- Record a pointer under its ref; the same bytes change nothing, other bytes replace it.
insert into sluice_state.artifact as held (run, sync, kind, shard, seq, variant, key, bytes, sha256, records, expires_at)
values (
    %(run)s, %(sync)s, %(kind)s, %(shard)s, %(seq)s, %(variant)s, %(key)s, %(bytes)s, %(sha256)s, %(records)s, %(expires_at)s
)
on conflict (run, kind, coalesce(shard, ''), seq, variant) do update set
    key = excluded.key,
    bytes = excluded.bytes,
    sha256 = excluded.sha256,
    records = excluded.records,
    expires_at = excluded.expires_at,
    superseded_at = null
where (held.key, held.sha256, held.superseded_at) is distinct from (excluded.key, excluded.sha256, null)

-- name: of_run
-- The pointers of one kind that count, of all shards and the run itself.
select * from sluice_state.artifact
where run = %(run)s and kind = %(kind)s and superseded_at is null
order by coalesce(shard, ''), seq, variant

-- name: of_shard
-- The pointers of one kind that count, of one shard; found by the index, however many shards the run has.
select * from sluice_state.artifact
where run = %(run)s and kind = %(kind)s and coalesce(shard, '') = %(shard)s and superseded_at is null
order by seq, variant

-- name: named
-- The newest pointer to each of some artifacts, whether it counts still or not.
select distinct on (key) * from sluice_state.artifact where key = any(%(keys)s) order by key, superseded_at desc nulls first, id desc
