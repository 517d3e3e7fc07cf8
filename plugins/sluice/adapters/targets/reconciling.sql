-- name: missing
-- Objects that the target should hold, and of which the table has no row; the table and how keys match it are filled in.
select o.key from sluice_ledger.object o
where o.sync = %(sync)s and o.state = 'live' and not exists (select from {} t where {})
order by o.key
