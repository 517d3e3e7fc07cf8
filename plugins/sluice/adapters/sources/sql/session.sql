-- name: begin
-- Values are spelled one way, whatever server and role prefer; the transaction's beginning, which is before all that it sees.
select
    now() as begun_at,
    set_config('timezone', 'UTC', true),
    set_config('datestyle', 'ISO, YMD', true),
    set_config('intervalstyle', 'iso_8601', true),
    set_config('bytea_output', 'hex', true),
    set_config('xmlbinary', 'base64', true),
    set_config('extra_float_digits', '3', true),
    set_config('statement_timeout', %(timeout)s, true)
