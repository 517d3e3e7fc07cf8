-- name: spell_alike
-- Values are spelled as the mapper reads them, whatever the server prefers.
select set_config('datestyle', 'ISO, YMD', true), set_config('extra_float_digits', '1', true)

-- name: create_asked
-- The objects asked about; it ends with the transaction.
create temporary table asked (key text collate "C" primary key) on commit drop

-- name: copy_asked
-- The objects asked about, on their way in.
copy asked (key) from stdin
