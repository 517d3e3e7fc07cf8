-- name: create_met
-- What a chunk could not take in, line by line of its rejects artifact; it ends with the transaction.
create temporary table met (
    line integer primary key,
    identity text not null,
    object_key text collate "C",
    raw_hash bytea,
    raw_artifact text not null,
    raw_frame integer not null,
    raw_index integer not null,
    error text not null,
    field text,
    message text not null
) on commit drop

-- name: copy_met
-- Take in many at once.
copy met (line, identity, object_key, raw_hash, raw_artifact, raw_frame, raw_index, error, field, message) from stdin

-- name: know_met
-- Let the planner know how many there are.
analyze met

-- name: end_twins
-- Of several letters of one object, one stays, that of the newest bytes: a redrive may tell the key of what nobody could name.
with twins as (
    select met.object_key, held.id, coalesce(held.delivered_at, held.first_seen) as delivered_at
    from met join sluice_state.dead_letter as held on held.sync = %(sync)s and held.status = 'open' and held.object_key is null
        and held.raw_hash = met.raw_hash and %(run)s = any(held.redriven_by)
    where met.object_key is not null
    union
    select met.object_key, held.id, coalesce(held.delivered_at, held.first_seen)
    from met join sluice_state.dead_letter as held
        on held.sync = %(sync)s and held.status = 'open' and held.object_key = met.object_key
), ranked as (
    select id, row_number() over (partition by object_key order by delivered_at desc, id desc) as place from twins
)
update sluice_state.dead_letter as held
set status = 'closed', ended_at = now(), ended_by = %(run)s, reason = 'another letter is of the same object'
from ranked where %(is_redrive)s and ranked.place > 1 and held.id = ranked.id

-- name: leave_twins
-- The bytes of those that have gone count nothing.
delete from met using sluice_state.dead_letter as held
where %(is_redrive)s and held.sync = %(sync)s and held.redriven_by @> array[%(run)s::text] and held.raw_hash = met.raw_hash
    and held.status = 'closed' and held.ended_by = %(run)s and held.reason = 'another letter is of the same object'

-- name: keep_last
-- Of several rejects of one object the last stands, as its later delivery does.
delete from met using (select line, max(line) over (partition by identity) as last from met) as ranked
where ranked.line = met.line and ranked.line < ranked.last

-- name: delivered
-- When what a run has not taken in was fetched from the supplier: before the run, if it asks no supplier itself.
select coalesce(
    (select created_at from sluice_state.run where id = %(replays)s),
    least(
        (select min(delivered_at) from sluice_state.dead_letter_lines where taken ? %(run)s::text),
        (select min(coalesce(delivered_at, first_seen)) from sluice_state.dead_letter where redriven_by @> array[%(run)s::text])
    ),
    %(began)s
) as at

-- name: hold_sync
-- Let one writer at a time count the letters of a sync, until this transaction ends.
select pg_advisory_xact_lock(hashtextextended('sluice.dead_letter ' || %(sync)s, 0))

-- name: stay_discarded
-- What a person has given up stays so as long as its bytes stay the same; that it came again is counted.
with stands as (
    select held.id, met.* from met join sluice_state.dead_letter as held
        on held.sync = %(sync)s and held.status = 'discarded' and held.raw_hash = met.raw_hash
        and held.object_key is not distinct from met.object_key
)
update sluice_state.dead_letter as held set
    run = %(run)s,
    shard = %(shard)s,
    raw_artifact = stands.raw_artifact,
    raw_frame = stands.raw_frame,
    raw_index = stands.raw_index,
    attempts = held.attempts + 1,
    last_seen = greatest(held.last_seen, now())
from stands
where held.id = stands.id and (held.raw_artifact, held.raw_frame, held.raw_index)
    is distinct from (stands.raw_artifact, stands.raw_frame, stands.raw_index)

-- name: leave_discarded
-- What was given up opens no letter.
delete from met using sluice_state.dead_letter as held
where held.sync = %(sync)s and held.status = 'discarded' and held.raw_hash = met.raw_hash
    and held.object_key is not distinct from met.object_key

-- name: leave_ended
-- What a redrive has taken up, and whose letter has ended meanwhile, opens no other: it came right, or was given up.
delete from met using sluice_state.dead_letter as held
where held.redriven_by @> array[%(run)s::text] and held.status <> 'open' and held.ended_by is distinct from %(run)s
    and (held.object_key = met.object_key or (held.object_key is null and held.raw_hash = met.raw_hash))

-- name: count_again
-- One more attempt of objects that have an open letter: another delivery, or the same one under another version.
-- The same again changes nothing, nor does what is older than the letter's bytes: a redrive, whose bytes are as old as those it
-- has taken up, changes these letters alone. Objects without a key are known by their bytes; those that an older release has met, by the
-- address of these alone. One whose key a redrive tells has it from then on.
with again as (
    select held.id, met.* from met join sluice_state.dead_letter as held
        on held.sync = %(sync)s and held.status = 'open' and held.object_key = met.object_key
    union all
    select held.id, met.* from met join sluice_state.dead_letter as held
        on held.sync = %(sync)s and held.status = 'open' and held.object_key is null and held.raw_hash = met.raw_hash
    where met.object_key is null or (%(is_redrive)s and %(run)s = any(held.redriven_by))
)
update sluice_state.dead_letter as held set
    object_key = again.object_key,
    run = %(run)s,
    shard = %(shard)s,
    raw_artifact = again.raw_artifact,
    raw_frame = again.raw_frame,
    raw_index = again.raw_index,
    raw_hash = again.raw_hash,
    transformer_version = %(transformer_version)s,
    delivered_at = case
        when %(run)s = any(held.redriven_by)
            or (held.raw_artifact, held.raw_frame, held.raw_index) = (again.raw_artifact, again.raw_frame, again.raw_index)
        then held.delivered_at else %(delivered_at)s
    end,
    error = again.error,
    field = again.field,
    message = again.message,
    redriven_by = case
        when %(run)s = any(held.redriven_by)
            or (held.raw_artifact, held.raw_frame, held.raw_index) = (again.raw_artifact, again.raw_frame, again.raw_index)
        then array_remove(held.redriven_by, %(run)s) else '{}'
    end,
    attempts = held.attempts + 1,
    last_seen = greatest(held.last_seen, now())
from again
where held.id = again.id
    and (held.raw_artifact, held.raw_frame, held.raw_index, coalesce(held.transformer_version, %(transformer_version)s))
    is distinct from (again.raw_artifact, again.raw_frame, again.raw_index, %(transformer_version)s)
    and case when %(is_redrive)s then %(run)s = any(held.redriven_by)
        else (held.raw_artifact, held.raw_frame, held.raw_index) = (again.raw_artifact, again.raw_frame, again.raw_index)
            or coalesce(held.delivered_at, held.first_seen) <= %(delivered_at)s
    end

-- name: leave_known
-- What has an open letter by now needs no other.
delete from met where
    (object_key is not null and exists (
        select from sluice_state.dead_letter as held
        where held.sync = %(sync)s and held.status = 'open' and held.object_key = met.object_key
    ))
    or (object_key is null and exists (
        select from sluice_state.dead_letter as held
        where held.sync = %(sync)s and held.status = 'open' and held.object_key is null and held.raw_hash = met.raw_hash
    ))
    or (object_key is null and exists (
        select from sluice_state.dead_letter as held
        where held.sync = %(sync)s and held.status = 'open' and held.object_key is null
            and (held.raw_artifact, held.raw_frame, held.raw_index) = (met.raw_artifact, met.raw_frame, met.raw_index)
    ))

-- name: leave_recorded
-- What this artifact has brought to the rest of its cause before is there, or is settled since.
delete from met using sluice_state.dead_letter_lines as rest
where rest.artifact = %(artifact)s and rest.raw_artifact = met.raw_artifact
    and rest.error = met.error and rest.field is not distinct from met.field

-- name: open_letters
-- Open letters, as long as their cause has room.
insert into sluice_state.dead_letter (
    sync, object_key, run, shard, raw_artifact, raw_frame, raw_index, raw_hash, transformer_version, delivered_at,
    error, field, message
)
select %(sync)s, met.object_key, %(run)s, %(shard)s, met.raw_artifact, met.raw_frame, met.raw_index, met.raw_hash,
    %(transformer_version)s, %(delivered_at)s, met.error, met.field, met.message
from (select *, row_number() over (partition by error, field order by line) as place from met) as met
left join (
    select error, field, count(*) as letters from sluice_state.dead_letter
    where sync = %(sync)s and status = 'open' group by error, field
) as held on held.error = met.error and held.field is not distinct from met.field
where met.place + coalesce(held.letters, 0) <= %(most)s
order by met.line

-- name: note_lines
-- Let the others stand where they are, in the artifact.
insert into sluice_state.dead_letter_lines (
    sync, error, field, message, run, shard, artifact, raw_artifact, transformer_version, delivered_at, lines
)
select %(sync)s, error, field, min(message), %(run)s, %(shard)s, %(artifact)s, raw_artifact, %(transformer_version)s,
    %(delivered_at)s, range_agg(int4range(line, line + 1))
from met group by error, field, raw_artifact order by error, field, raw_artifact
on conflict do nothing

-- name: close
-- Close the open letters of objects that came right; a replay closes those alone that it or a run it replays has opened.
update sluice_state.dead_letter set status = 'closed', ended_at = now(), ended_by = %(run)s
where sync = %(sync)s and status = 'open' and object_key = any(%(keys)s)
    and (%(donors)s::text[] is null or run = any(%(donors)s) or run = %(run)s)

-- name: close_absent
-- Close the open letters of what a run that has seen all there is has not met.
-- It meets objects in chunks of its own, and in those of the run it has taken them over from.
update sluice_state.dead_letter as held set
    status = 'closed', ended_at = now(), ended_by = %(run)s, reason = 'a run that saw all there is did not meet it'
where held.sync = %(sync)s and held.status = 'open' and held.last_seen < %(began)s
    and not exists (
        select from sluice_state.artifact
        where artifact.key = held.raw_artifact and artifact.run = %(run)s and artifact.kind = 'raw'
    )

-- name: drop_absent_lines
-- What a run that has seen all there is has not met stands no longer among the rest of its cause.
delete from sluice_state.dead_letter_lines as rest
where rest.sync = %(sync)s and rest.status = 'open' and rest.seen_at < %(began)s
    and not exists (
        select from sluice_state.artifact
        where artifact.key = rest.artifact and artifact.run = %(run)s and artifact.kind = 'rejects'
    )

-- name: open_keys
-- The objects that have an open letter.
select object_key from sluice_state.dead_letter where sync = %(sync)s and status = 'open' and object_key is not null

-- name: lines_of
-- What has no letter of its own, oldest first.
select * from sluice_state.dead_letter_lines where sync = %(sync)s order by id

-- name: create_seen
-- Objects that came again; they end with the transaction.
create temporary table seen (
    identity text not null,
    raw_hash bytea,
    artifact text,
    line integer,
    raw_artifact text,
    raw_frame integer,
    raw_index integer
) on commit drop

-- name: create_counted
-- Where objects of the rest stand; it ends with the transaction.
create temporary table counted (
    row bigint not null,
    line integer not null,
    identity text not null,
    raw_hash bytea
) on commit drop

-- name: copy_seen
-- Take in many at once.
copy seen (identity, raw_hash, artifact, line, raw_artifact, raw_frame, raw_index) from stdin

-- name: copy_counted
-- Take in many at once.
copy counted (row, line, identity, raw_hash) from stdin

-- name: know_settling
-- Let the planner know how many there are.
analyze seen, counted

-- name: create_matched
-- What came again, held against where it stands among the rest; it ends with the transaction.
create temporary table matched (
    rest bigint not null,
    line integer not null,
    delivered_at timestamptz not null,
    artifact text,
    own_line integer,
    raw_artifact text,
    raw_frame integer,
    raw_index integer,
    becomes text not null
) on commit drop

-- name: match
-- Tell what becomes of what came again.
-- `moved`: it leaves the rest, be it right or wrong, since what is wrong is counted where it
-- came last. `older`: it is wrong in older bytes than those that stand in the rest, and counted there alone. `given up`: a person has
-- discarded the same bytes.
-- A replay, whose data may be old, moves what it or a run it replays has brought, and a redrive what it has taken up; both of them
-- also what is no newer than what they bring, if that is wrong.
insert into matched
select counted.row, counted.line, rest.delivered_at, seen.artifact, seen.line, seen.raw_artifact, seen.raw_frame, seen.raw_index,
    case
        when rest.status = 'discarded' then 'given up'
        when (%(donors)s::text[] is null and not %(is_redrive)s) or rest.run = any(%(donors)s) or rest.run = %(run)s
            or (seen.line is not null and (rest.taken ? %(run)s::text or rest.delivered_at <= %(delivered_at)s))
        then 'moved'
        else 'older'
    end
from counted join seen using (identity) join sluice_state.dead_letter_lines as rest on rest.id = counted.row
where rest.status = 'open' or (seen.line is not null and seen.raw_hash = counted.raw_hash)

-- name: date_letters
-- What a redrive has rejected again is as old as where it stood before.
update sluice_state.dead_letter as held set delivered_at = matched.delivered_at
from matched
where %(is_redrive)s and matched.becomes = 'moved' and held.sync = %(sync)s and held.run = %(run)s and held.status = 'open'
    and (held.raw_artifact, held.raw_frame, held.raw_index) = (matched.raw_artifact, matched.raw_frame, matched.raw_index)

-- name: date_lines
-- And so it is where it has no letter.
with dated as (
    select own.id, matched.delivered_at, range_agg(int4range(matched.own_line, matched.own_line + 1)) as lines
    from matched join sluice_state.dead_letter_lines as own on own.artifact = matched.artifact and own.status = 'open'
        and own.lines @> matched.own_line and own.delivered_at <> matched.delivered_at
    where %(is_redrive)s and matched.becomes = 'moved' group by own.id, matched.delivered_at
), left_over as (
    select own.id, own.lines - found.lines as lines
    from (select id, range_agg(span) as lines from dated, unnest(lines) as span group by id) as found
    join sluice_state.dead_letter_lines as own using (id)
), emptied as (
    delete from sluice_state.dead_letter_lines as own using left_over where own.id = left_over.id and isempty(left_over.lines)
), lessened as (
    update sluice_state.dead_letter_lines as own set lines = left_over.lines
    from left_over where own.id = left_over.id and not isempty(left_over.lines)
)
insert into sluice_state.dead_letter_lines as held (
    sync, error, field, message, run, shard, artifact, raw_artifact, transformer_version, delivered_at, lines, seen_at
)
select own.sync, own.error, own.field, own.message, own.run, own.shard, own.artifact, own.raw_artifact, own.transformer_version,
    dated.delivered_at, dated.lines, own.seen_at
from dated join sluice_state.dead_letter_lines as own using (id)
on conflict (artifact, raw_artifact, error, coalesce(field, ''), delivered_at) do update set lines = held.lines + excluded.lines

-- name: settle
-- Take out of the rest what moves.
with gone as (
    select rest, range_agg(int4range(line, line + 1)) as lines from matched where becomes = 'moved' group by rest
), left_over as (
    select rest.id, rest.lines - gone.lines as lines from gone join sluice_state.dead_letter_lines as rest on rest.id = gone.rest
), emptied as (
    delete from sluice_state.dead_letter_lines as rest using left_over
    where rest.id = left_over.id and isempty(left_over.lines)
)
update sluice_state.dead_letter_lines as rest set lines = left_over.lines
from left_over where rest.id = left_over.id and not isempty(left_over.lines)

-- name: take_back
-- What is counted elsewhere, or was given up, needs no letter: one that was opened just now goes.
delete from sluice_state.dead_letter as held using matched
where matched.becomes <> 'moved' and held.sync = %(sync)s and held.run = %(run)s and held.status = 'open' and held.attempts = 1
    and (held.raw_artifact, held.raw_frame, held.raw_index) = (matched.raw_artifact, matched.raw_frame, matched.raw_index)

-- name: give_up_again
-- A letter that has come to the bytes which were given up goes the same way.
update sluice_state.dead_letter as held set status = 'discarded', ended_at = rest.ended_at, ended_by = rest.ended_by, reason = rest.reason
from matched join sluice_state.dead_letter_lines as rest on rest.id = matched.rest
where matched.becomes = 'given up' and held.sync = %(sync)s and held.status = 'open'
    and (held.raw_artifact, held.raw_frame, held.raw_index) = (matched.raw_artifact, matched.raw_frame, matched.raw_index)

-- name: take_back_lines
-- Nor does it stand among the rest that the run has brought.
with gone as (
    select own.id, own.lines - range_agg(int4range(matched.own_line, matched.own_line + 1)) as lines
    from matched join sluice_state.dead_letter_lines as own on own.artifact = matched.artifact and own.status = 'open'
    where matched.becomes <> 'moved' group by own.id, own.lines
), emptied as (
    delete from sluice_state.dead_letter_lines as own using gone where own.id = gone.id and isempty(gone.lines)
)
update sluice_state.dead_letter_lines as own set lines = gone.lines from gone where own.id = gone.id and not isempty(gone.lines)
