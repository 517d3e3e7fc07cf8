-- name: create_asked
-- The objects asked about, and none of an earlier question; it ends with the transaction.
create temporary table if not exists asked (key text collate "C" primary key) on commit drop;
truncate asked

-- name: copy_asked
-- The objects asked about, on their way in.
copy asked (key) from stdin
