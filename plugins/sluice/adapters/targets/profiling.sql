-- name: create_profiled
-- The rows that are summed up; and apart from them the lowest and highest values of all that comes in, drawn or not.
create temporary table profiled ({columns}) on commit drop;
create temporary table extremes (like profiled) on commit drop

-- name: add_arriving
-- Takes in the rows that come in, or those drawn of them.
insert into profiled
select {values} from arriving t
where (hashtextextended(t._key, 0) & %(mask)s) < %(drawn)s
    and t._key not in (select key from shown where outcome = 'stale')

-- name: add_staying
-- Takes in the rows of the table, or those drawn of them, that neither change nor go.
insert into profiled
select {values} from {table}
where {live} and not exists (
    select from compared c where c.outcome in ('created', 'changed', 'reappeared', 'deleted') and {matches}
)

-- name: count_nulls
-- Of the rows of the table that neither change nor go, how many have no value of some fields.
select array[{nulls}] as nulls from {table} t
where {live} and not exists (
    select from compared c where c.outcome in ('created', 'changed', 'reappeared', 'deleted') and {matches}
)

-- name: summarize
-- All fields in one pass.
with summed as (select count(*) as looked_at, {sums} from profiled)
select looked_at, {results} from summed

-- name: fill_bins
-- How many rows are in which bins of each number field: of those it is compared over, and of its own deciles. The fields are
-- numbered as they are listed; an array of them takes a third of the time that VALUES would.
select place, bin, own_bin, count(*) as rows
from (
    select
        f.place,
        width_bucket(f.number, case f.place {edges} end) as bin,
        width_bucket(f.number, case f.place {own_edges} end) as own_bin
    from profiled cross join lateral unnest(array[{numbers}]) with ordinality as f (number, place)
    where f.number is not null
) as found
group by place, bin, own_bin

-- name: count_categories
-- The most frequent values of each category field, and those that are asked for. The fields are numbered as above.
with counted as (
    select f.place, f.value, count(*) as rows,
        row_number() over (partition by f.place order by count(*) desc, f.value collate "C") as rank
    from profiled cross join lateral unnest(array[{texts}]) with ordinality as f (value, place)
    where f.value is not null
    group by f.place, f.value
)
select place, value, rows from counted
where rank <= %(most)s or (place, value) in (select * from unnest(%(places)s::integer[], %(values)s::text[]))
order by place, rows desc, value collate "C"
