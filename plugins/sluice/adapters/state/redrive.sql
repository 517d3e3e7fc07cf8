-- name: shards
-- How many objects there are to be taken up, by the shard that delivered them.
select shard, sum(objects)::bigint as objects from (
    select shard, count(*) as objects from sluice_state.dead_letter
    where sync = %(sync)s and status = 'open'
        and (cardinality(%(ids)s::bigint[]) = 0 or id = any(%(ids)s))
        and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
    group by shard
    union all
    select shard, upper(span) - lower(span) from sluice_state.dead_letter_lines, unnest(lines) as span
    where sync = %(sync)s and status = 'open' and cardinality(%(ids)s::bigint[]) = 0
        and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
) as found
group by shard order by shard

-- name: state
-- What tells one selection from the same one at another time: the letters with what their bytes hash to, and the newest of the rest.
select
    (select md5(string_agg(concat_ws(' ', id, encode(raw_hash, 'hex')), ',' order by id)) from sluice_state.dead_letter
        where sync = %(sync)s and status = 'open'
            and (cardinality(%(ids)s::bigint[]) = 0 or id = any(%(ids)s))
            and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))) as letters,
    (select max(id) from sluice_state.dead_letter_lines
        where sync = %(sync)s and status = 'open' and cardinality(%(ids)s::bigint[]) = 0
            and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))) as rest

-- name: letters
-- Letters of a shard to be taken up, in the order in which their bytes stand, behind those of an address.
select * from sluice_state.dead_letter
where sync = %(sync)s and status = 'open' and shard = %(shard)s
    and (cardinality(%(ids)s::bigint[]) = 0 or id = any(%(ids)s))
    and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
    and (
        %(artifact)s::text is null
        or (raw_artifact, raw_frame, raw_index) > (%(artifact)s, %(frame)s::integer, %(index)s::integer)
    )
order by raw_artifact, raw_frame, raw_index limit %(limit)s

-- name: lines
-- What of a shard has no letter and is to be taken up, behind a row; of a cause, or of all. And what the run has taken up of it.
select *, (taken ->> %(run)s::text)::int4multirange as taken_by_run from sluice_state.dead_letter_lines
where sync = %(sync)s and status = 'open' and shard = %(shard)s and cardinality(%(ids)s::bigint[]) = 0
    and (%(error)s::text is null or (error = %(error)s and field is not distinct from %(field)s::text))
    and id > %(after)s
order by id

-- name: take_up
-- Note that a run has the bytes of some letters, and what their hash is.
-- Where older releases have written several letters of the same bytes that nobody can name, one of them has the hash: it is the
-- letter of these bytes from now on.
update sluice_state.dead_letter as held set
    redriven_by = array_append(array_remove(held.redriven_by, %(run)s), %(run)s),
    raw_hash = coalesce(held.raw_hash, case when held.object_key is not null or taken.is_first then taken.raw_hash end)
from (
    select found.id, found.raw_hash,
        row_number() over (partition by found.raw_hash, letter.object_key is null order by found.id) = 1
        and not exists (
            select from sluice_state.dead_letter as other
            where other.sync = letter.sync and other.status = 'open' and other.object_key is null
                and other.raw_hash = found.raw_hash
        ) as is_first
    from unnest(%(ids)s::bigint[], %(hashes)s::bytea[]) as found (id, raw_hash)
    join sluice_state.dead_letter as letter on letter.id = found.id
) as taken
where held.id = taken.id and held.status = 'open'

-- name: take_up_lines
-- Note that a run has the bytes of some objects without a letter.
update sluice_state.dead_letter_lines set taken = taken || jsonb_build_object(%(run)s::text, %(lines)s::int4multirange::text)
where id = %(row)s

-- name: hand_over
-- What a dead run has taken up, its successor has.
with letters as (
    update sluice_state.dead_letter set redriven_by = array_replace(redriven_by, %(donor)s, %(run)s)
    where redriven_by @> array[%(donor)s::text]
)
update sluice_state.dead_letter_lines set taken = taken - %(donor)s::text || jsonb_build_object(%(run)s::text, taken -> %(donor)s::text)
where taken ? %(donor)s::text

-- name: taken
-- The letters that a run has taken up, whatever has become of them since.
select * from sluice_state.dead_letter where redriven_by @> array[%(run)s::text] order by id

-- name: taken_lines
-- What a run has taken up that has no letter of its own.
select *, (taken ->> %(run)s::text)::int4multirange as taken_by_run from sluice_state.dead_letter_lines
where taken ? %(run)s::text order by id

-- name: close_redriven
-- Close the letters that a run has taken up and not rejected again, in the shards that have come in.
update sluice_state.dead_letter set status = 'closed', ended_at = now(), ended_by = %(run)s,
    reason = case
        when object_key = any(%(overtaken)s) or (object_key is null and raw_hash = any(%(hashes)s::bytea[]))
            then 'a later delivery of it was published'
        when object_key is null and raw_hash is null then 'another letter is of the same bytes'
    end
where redriven_by @> array[%(run)s::text] and status = 'open' and shard = any(%(shards)s)

-- name: settle_redriven
-- Take out of the rest what a run has taken up: it came right, or is counted where the run has met it.
with left_over as (
    select id, lines - (taken ->> %(run)s::text)::int4multirange as lines from sluice_state.dead_letter_lines
    where taken ? %(run)s::text and status = 'open' and shard = any(%(shards)s)
), emptied as (
    delete from sluice_state.dead_letter_lines as rest using left_over where rest.id = left_over.id and isempty(left_over.lines)
)
update sluice_state.dead_letter_lines as rest set lines = left_over.lines
from left_over where rest.id = left_over.id and not isempty(left_over.lines)
