-- name: record
-- Open a dead letter for each object, or count one more delivery of it; the same delivery again changes nothing.
insert into sluice_state.dead_letter as held (
    sync, object_key, run, shard, raw_artifact, raw_frame, raw_index, error, field, message
)
select %(sync)s, met.object_key, %(run)s, %(shard)s, met.raw_artifact, met.raw_frame, met.raw_index, met.error, met.field,
    met.message
from jsonb_to_recordset(%(rejects)s) as met (
    object_key text, raw_artifact text, raw_frame integer, raw_index integer, error text, field text, message text
)
order by met.object_key collate "C"
on conflict (sync, object_key) where status = 'open' and object_key is not null do update set
    run = excluded.run,
    shard = excluded.shard,
    raw_artifact = excluded.raw_artifact,
    raw_frame = excluded.raw_frame,
    raw_index = excluded.raw_index,
    error = excluded.error,
    field = excluded.field,
    message = excluded.message,
    attempts = held.attempts + 1,
    last_seen = greatest(held.last_seen, excluded.last_seen)
where (held.raw_artifact, held.raw_frame, held.raw_index)
    is distinct from (excluded.raw_artifact, excluded.raw_frame, excluded.raw_index)

-- name: record_without_key
-- Open a dead letter for each object whose key could not be read; only the address of its bytes tells one from another.
insert into sluice_state.dead_letter (sync, run, shard, raw_artifact, raw_frame, raw_index, error, field, message)
select %(sync)s, %(run)s, %(shard)s, met.raw_artifact, met.raw_frame, met.raw_index, met.error, met.field, met.message
from jsonb_to_recordset(%(rejects)s) as met (
    raw_artifact text, raw_frame integer, raw_index integer, error text, field text, message text
)
order by met.raw_artifact, met.raw_frame, met.raw_index
on conflict (sync, raw_artifact, raw_frame, raw_index) where status = 'open' and object_key is null do nothing

-- name: close
-- Close the open dead letters of some objects; a replay closes those alone that it or the run it replays has opened.
update sluice_state.dead_letter set status = 'closed'
where sync = %(sync)s and status = 'open' and object_key = any(%(keys)s)
    and (%(replays)s::text is null or run in (%(replays)s, %(run)s))

-- name: open_for
-- Open dead letters of a sync, newest first.
select * from sluice_state.dead_letter
where sync = %(sync)s and status = 'open' order by last_seen desc, id desc limit %(limit)s
