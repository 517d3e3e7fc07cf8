-- name: get
-- The client's token, if it may still be used.
select sealed, expires_at - clock_timestamp() as good_for from sluice_state.access_token
where client = %(client)s and sealed is not null and (expires_at is null or expires_at > clock_timestamp())

-- name: patience
-- Wait no longer than this for whoever holds the row.
select set_config('lock_timeout', %(milliseconds)s, true)

-- name: note
-- Make sure that the client has a row to hold. Who notes the same client at the same time waits here.
insert into sluice_state.access_token (client) values (%(client)s) on conflict (client) do nothing

-- name: hold
-- Hold the client's row until the transaction ends: nobody else asks for its token meanwhile.
select
    sealed,
    expires_at - clock_timestamp() as good_for,
    sealed is not null and (expires_at is null or expires_at > clock_timestamp()) as is_good
from sluice_state.access_token where client = %(client)s for update

-- name: keep
-- Put a new token into the place of the old one.
update sluice_state.access_token set
    sealed = %(sealed)s,
    renewed_at = clock_timestamp(),
    expires_at = clock_timestamp() + %(good_for)s::interval
where client = %(client)s
