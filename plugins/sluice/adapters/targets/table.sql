-- name: lock
-- One writer at a time for each target table, whoever it belongs to; held until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('sluice:' || %(table)s, 0))

-- name: spell_alike
-- Values are spelled as the mapper reads and writes them, in full, whatever the server prefers.
select
    set_config('array_nulls', 'on', true),
    set_config('bytea_output', 'hex', true),
    set_config('datestyle', 'ISO, YMD', true),
    set_config('intervalstyle', 'postgres', true),
    set_config('extra_float_digits', '1', true)

-- name: work_in_bulk
-- Sorts and joins of all objects of a sync stay in memory as far as that may be, nothing is compiled that runs once, and of
-- temporary tables the planner needs to know little more than their size.
select
    set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')), pg_size_bytes('64MB')) / 1024 || 'kB', true),
    set_config('jit', 'off', true),
    set_config('default_statistics_target', '10', true)

-- name: encoding
-- Which letters the database has a place for.
select current_setting('server_encoding') as server_encoding

-- name: be_impatient
-- Who waits to alter a table holds up all who come after, readers included: so not for long.
select set_config('lock_timeout', %(patience)s, true)

-- name: place
-- Whether there is a schema for the table, and what we may do there.
select
    current_user as role,
    n.oid is not null as has_schema,
    coalesce(has_schema_privilege(n.oid, 'usage'), true) as may_use,
    coalesce(has_schema_privilege(n.oid, 'create'), has_database_privilege(current_database(), 'create')) as may_create
from (select) one
left join pg_catalog.pg_namespace n on n.nspname = %(schema)s

-- name: relation
-- What goes by the table's name.
select
    c.oid as id,
    c.relkind::text as kind,
    c.relispartition as is_partition,
    pg_has_role(c.relowner, 'usage') as is_ours,
    obj_description(c.oid, 'pg_class') as comment,
    array(
        select privilege from unnest(array['select', 'insert', 'update', 'delete']) privilege
        where not has_table_privilege(c.oid, privilege)
    ) as lacking
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relname = %(table)s

-- name: published
-- How many objects the ledger says the table holds.
select count(*) as objects from sluice_ledger.object where sync = %(sync)s and state = 'live'

-- name: columns
-- The columns of a table, and what a type cannot be changed under.
select
    a.attname as name,
    format_type(a.atttypid, a.atttypmod) as type,
    not a.attnotnull as takes_null,
    a.atthasdef or a.attidentity <> '' or a.attgenerated <> '' as fills_itself,
    a.attidentity = 'a' or a.attgenerated <> '' as takes_nothing,
    exists (select from pg_catalog.pg_collation c where c.oid = a.attcollation and not c.collisdeterministic) as is_lenient,
    col_description(a.attrelid, a.attnum) as comment,
    array(
        select distinct
            case
                when r.oid is not null then pg_describe_object('pg_class'::regclass, r.ev_class, 0)
                when f.oid is not null then pg_describe_object('pg_class'::regclass, f.adrelid, f.adnum)
                else pg_describe_object(d.classid, d.objid, d.objsubid)
            end
        from pg_catalog.pg_depend d
        left join pg_catalog.pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
        left join pg_catalog.pg_attrdef f
            on d.classid = 'pg_attrdef'::regclass and f.oid = d.objid and (f.adrelid, f.adnum) <> (a.attrelid, a.attnum)
        where d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid and d.refobjsubid = a.attnum
            and (
                r.oid is not null or f.oid is not null
                or d.classid in ('pg_trigger'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
            )
        union all
        select 'the partitioning of the table' from pg_catalog.pg_partitioned_table p
        where p.partrelid = a.attrelid and a.attnum = any(p.partattrs)
    ) as dependents
from pg_catalog.pg_attribute a
where a.attrelid = %(id)s and a.attnum > 0 and not a.attisdropped

-- name: keys
-- The unique keys of a table that can be relied on at once: their columns, their condition, and what they are called.
select
    array(
        select a.attname::text from unnest(i.indkey::int2[]) with ordinality k (attnum, place)
        join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
        where k.place <= i.indnkeyatts order by k.place
    ) as columns,
    pg_get_expr(i.indpred, i.indrelid) as condition,
    c.relname::text as index,
    o.conname::text as constraint
from pg_catalog.pg_index i
join pg_catalog.pg_class c on c.oid = i.indexrelid
left join pg_catalog.pg_constraint o on o.conindid = i.indexrelid and o.conrelid = i.indrelid and o.contype in ('p', 'u')
where i.indrelid = %(id)s and i.indisunique and i.indisvalid and i.indimmediate and i.indexprs is null
order by c.relname

-- name: deferrable
-- The constraints that may wait for the commit: of the table itself, and of others that refer to it.
select distinct cn.nspname as schema, c.conname as name
from pg_catalog.pg_constraint c
join pg_catalog.pg_namespace cn on cn.oid = c.connamespace
join pg_catalog.pg_class t on t.oid in (c.conrelid, c.confrelid)
join pg_catalog.pg_namespace n on n.oid = t.relnamespace
where c.condeferrable and n.nspname = %(schema)s and t.relname = %(table)s
order by 1, 2
