-- name: create_checked
-- All rows that the table would hold, in the columns that a suite needs: those that come in with the keys of their objects, and
-- those that stay. Of objects that offend: where they stand, and which expectation says so.
create temporary table checked (_key text collate "C"{columns}) on commit drop;
create temporary table offending (
    key text collate "C" primary key,
    shard text collate "C" not null,
    seq integer not null,
    position integer not null,
    transformer_version integer,
    expectation integer not null,
    value text
) on commit drop

-- name: create_expected
-- The same as it is shown to what checks it: with the table's columns and no others. Those that no check reads are null.
create temporary view expected as select {columns} from pg_temp.checked

-- name: analyze_compared
-- Lets the planner know that there are many rows of few artifacts, which it else sorts, row by row.
analyze compared (key, outcome, shard, seq)

-- name: arriving
-- Where in each rows artifact the rows stand that come in, as one text: a list would be read number by number.
select shard, seq, string_agg(position::text, ',') as positions from compared
where mapped and outcome in ('created', 'changed', 'reappeared')
group by shard, seq order by shard, seq

-- name: add_staying
-- Takes in the rows of the table that neither change nor go.
insert into checked ({names})
select {values} from {table} t
where {live} and not exists (
    select from compared c where c.outcome in ('created', 'changed', 'reappeared', 'deleted') and {matches}
)

-- name: analyze_checked
-- Lets the planner know how many there are.
analyze checked

-- name: bound_statements
-- Says how long a statement may take, and how long it might before.
select before, set_config('statement_timeout', %(limit)s, true)
from (select current_setting('statement_timeout') as before offset 0) as settings

-- name: count_offenders
-- How many rows do not meet an expectation, and how many of them come in.
select count(*) as rows, count(_key) as arriving from checked where {offends}

-- name: sample_offenders
-- Some of them, always the same ones: those that come in first, by key.
select _key as key, left({shown}, {longest}) as value from checked where {offends}
order by _key nulls last, value limit {samples}

-- name: note_offenders
-- Notes the objects that come in and do not meet an expectation; one that breaks several is noted for the first.
insert into offending (key, shard, seq, position, transformer_version, expectation, value)
select k._key, c.shard, c.seq, c.position, c.transformer_version, {expectation}, k.value
from (select _key, left({shown}, {longest}) as value from checked where _key is not null and {offends}) k
join compared c on c.key = k._key
on conflict (key) do nothing

-- name: offenders
-- Where they stand, one rows artifact after the other.
select shard, seq, position, key, expectation, value from offending order by shard, seq, position

-- name: reject_offenders
-- Takes them for delivered and rejected, in whatever other form they were delivered as well.
delete from staged s using offending o where s.key = o.key;
insert into rejected (key, transformer_version) select key, transformer_version from offending

-- name: drop_offenders
-- Leaves them out of what the table would hold.
delete from checked k using offending o where k._key = o.key

-- name: put_back
-- The rows in whose place they would have come stay.
insert into checked ({names})
select {values} from offending o join {table} t on {matches} and {live}
