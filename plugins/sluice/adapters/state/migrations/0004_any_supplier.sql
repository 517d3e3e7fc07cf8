-- A shard remembers the supplier's own time when it was begun, above which no watermark goes; and all workers share one access
-- token per client, of which only one at a time asks for the next.

alter table sluice_state.shard add column until timestamptz;
comment on column sluice_state.shard.until is
    'The supplier''s time when the shard was begun, less the margin: no watermark goes above it. Null before its first page.';

create table sluice_state.access_token (
    client text primary key check (client <> ''),
    sealed bytea,
    renewed_at timestamptz not null default now(),
    expires_at timestamptz
);
comment on table sluice_state.access_token is 'Control state. The access tokens of OAuth2 clients, shared by all workers.';
comment on column sluice_state.access_token.client is 'A digest of token address, client id, scope and further parameters.';
comment on column sluice_state.access_token.sealed is 'The token, encrypted with a key made from the client''s secret; null: there is none yet.';
comment on column sluice_state.access_token.renewed_at is 'When it was received.';
comment on column sluice_state.access_token.expires_at is 'When it ends; null: the supplier did not say.';
