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

-- name: rows_elsewhere
-- The rows that another run has made of the very same raw chunk, by this version and in this way: the fullest, and newest.
select made.* from sluice_state.artifact as raw
join sluice_state.artifact as made on made.run = raw.run and made.kind = %(rows)s
    and coalesce(made.shard, '') = coalesce(raw.shard, '') and made.seq = raw.seq
    and starts_with(made.variant, %(made_by)s) and made.superseded_at is null
    and coalesce(made.expires_at, 'infinity') > now()
where raw.key = %(key)s and raw.kind = %(raw)s and raw.sha256 = %(sha256)s and raw.run <> %(run)s and raw.superseded_at is null
order by position('-full-' in made.variant) > 0 desc, made.id desc limit 1

-- name: named
-- The newest pointer to each of some artifacts, whether it counts still or not.
select distinct on (key) * from sluice_state.artifact where key = any(%(keys)s) order by key, superseded_at desc nulls first, id desc
