-- name: relation
-- What goes by a table's name, in the schema that is named, or where the server looks first.
select c.oid as id, n.nspname as schema, c.relname as name, c.relkind::text as kind
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where
    c.relname = %(table)s
    and c.relkind in ('r', 'p', 'v', 'm', 'f')
    and case when %(schema)s::text is null then pg_table_is_visible(c.oid) else n.nspname = %(schema)s end

-- name: columns
-- The columns of a table: the type of each, without its length; what sort of type that is; the one it is made of; and whether
-- nothing forbids a null.
select
    a.attname as name,
    format_type(a.atttypid, -1) as type,
    t.typcategory::text as category,
    coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text as base,
    not a.attnotnull as may_be_null
from pg_catalog.pg_attribute a
join pg_catalog.pg_type t on t.oid = a.atttypid
where a.attrelid = %(id)s and a.attnum > 0 and not a.attisdropped
order by a.attnum

-- name: unique_keys
-- What tells all rows of a table apart: the columns of each unique index that leaves no row out.
select array(
    select a.attname::text
    from unnest(i.indkey::int2[]) with ordinality part (number, place)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = part.number
    where part.place <= i.indnkeyatts
) as columns
from pg_catalog.pg_index i
where i.indrelid = %(id)s and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
