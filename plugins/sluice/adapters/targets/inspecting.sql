-- name: analyze_comparison
-- Lets the planner know what the comparison has come to.
analyze compared (key, outcome, shard, seq)

-- name: show
-- The first objects of each outcome, in key order: what people see of it.
create temporary table shown on commit drop as
select first.*
from unnest(%(outcomes)s::text[]) as present (outcome)
cross join lateral (
    select key, outcome, shard, old_shard, version, old_version from compared
    where outcome = present.outcome order by key limit %(samples)s
) first

-- name: need
-- Where in each rows artifact the rows stand that come in, and those of them that are looked at: all that change something,
-- and of new ones a sample, which a stable hash of the key draws.
create temporary table needed on commit drop as
select
    shard, seq,
    array_agg(position) filter (where outcome <> 'stale') as coming_in,
    array_agg(position) filter (
        where outcome in ('changed', 'reappeared')
            or outcome = 'created' and (hashtextextended(key, 0) & %(mask)s) < %(drawn)s
            or key in (select key from shown)
    ) as looked_at
from compared
where mapped and outcome in ('created', 'changed', 'reappeared', 'stale')
group by shard, seq

-- name: index_needed
-- Finds what is needed of one artifact, of which there may be ten thousand.
create unique index on needed (shard, seq)

-- name: needed
-- The rows artifacts that hold such rows. While a sample is drawn, the highest and lowest values of all others count as well.
select shard, seq from needed where looked_at is not null or %(is_sample)s and coming_in is not null order by shard, seq

-- name: places
-- Where in one artifact they stand.
select coalesce(coming_in, '{}') as coming_in, coalesce(looked_at, '{}') as looked_at from needed
where shard = %(shard)s and seq = %(seq)s

-- name: create_arriving
-- The rows that come in and are looked at. The columns are those of the spec.
create temporary table arriving (_key text collate "C" not null, {}) on commit drop

-- name: index_arriving
-- Finds the rows of single objects, and lets the planner know how many there are.
create index on arriving (_key);
analyze arriving (_key)

-- name: create_differing
-- By object the places of the fields, in the spec, that differ from what the table holds.
create temporary table differing (key text collate "C" primary key, fields smallint[] not null) on commit drop

-- name: compare_fields
-- Lays the rows that come in beside those whose place they take, column by column.
insert into differing (key, fields)
select a._key, {differing}
from compared k join arriving a on a._key = k.key {beside}
where k.outcome in ('changed', 'reappeared')
order by a._key

-- name: field_changes
-- In how many objects each field differs, and the first of them, in key order.
select counted.field, counted.objects, array(
    select key from differing where counted.field = any(differing.fields) order by key limit %(samples)s
) as keys
from (
    select field, count(*) as objects from differing cross join lateral unnest(differing.fields) as field group by field
) counted
order by objects desc, field

-- name: shown
-- What people see of each outcome, in key order.
select * from shown order by key

-- name: side_by_side
-- The rows of some objects, as they are and as they would be, and the places of the fields in which they differ.
select k.key, a._key is not null as comes_in, {differing} as fields, {old}, {new}
from unnest(%(keys)s::text[]) as k (key) left join arriving a on a._key = k.key {beside}
