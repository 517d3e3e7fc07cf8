-- name: lock
-- One writer at a time for each target table, whoever it belongs to; held until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('sluice:' || %(table)s, 0))

-- name: columns
-- The columns of a table, their types, and whether an insert has to give a value.
select
    a.attname as name,
    format_type(a.atttypid, a.atttypmod) as type,
    a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' as needs_value
from pg_catalog.pg_attribute a
join pg_catalog.pg_class c on c.oid = a.attrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(table)s and a.attnum > 0 and not a.attisdropped

-- name: unique_keys
-- The columns of each unique key that an upsert can rely on.
select array_agg(a.attname::text) as columns
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
where n.nspname = %(schema)s and c.relname = %(table)s and i.indisunique and i.indisvalid and i.indpred is null
    and i.indexprs is null
group by i.indexrelid
