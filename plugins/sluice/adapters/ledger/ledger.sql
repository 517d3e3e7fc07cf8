-- name: remembered
-- What is remembered of some objects' bytes, where the same transformation made them.
select key, raw_hash, row_hash, source_version from sluice_ledger.object
where sync = %(sync)s and state = 'live' and transformer_version = %(transformer_version)s
    and key = any(array(select json_array_elements_text(%(keys)s)))

-- name: object
-- All that is known of one object.
select * from sluice_ledger.object where sync = %(sync)s and key = %(key)s

-- name: known
-- All that is known of some objects.
select * from sluice_ledger.object where sync = %(sync)s and key = any(%(keys)s)

-- name: near
-- The keys around one, in key order.
with below as (
    select key from sluice_ledger.object where sync = %(sync)s and key < %(key)s order by key desc limit %(limit)s
), above as (
    select key from sluice_ledger.object where sync = %(sync)s and key > %(key)s order by key limit %(limit)s
)
select key from below union all select key from above order by key

-- name: events
-- All that became of one object.
select at, run, outcome, old_hash, new_hash, source_version, publication, transformer_version from sluice_ledger.object_event
where sync = %(sync)s and key = %(key)s order by at, publication

-- name: publications
-- The newest publications first, of those before one.
select * from sluice_ledger.publication
where sync = %(sync)s and id < %(before)s order by id desc limit %(limit)s

-- name: publication
-- One publication.
select * from sluice_ledger.publication where id = %(id)s

-- name: publication_of
-- The publication of a review, if it was applied.
select * from sluice_ledger.publication where review = %(review)s
