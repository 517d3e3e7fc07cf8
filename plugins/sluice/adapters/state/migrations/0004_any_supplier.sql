-- A shard remembers the supplier's own time when it was begun, above which no watermark goes; a run may map once more what
-- another has fetched; one that waits for a supplier keeps its flight meanwhile; and all workers share one access token per
-- client, of whom only one at a time asks for the next.
--
-- Whoever replays a run has the locks of his own lease and run, then locks that run: nobody who has an older run's lock waits for
-- a newer run's.

alter table sluice_state.shard
    add column until timestamptz,
    add column supplied_at timestamptz;
comment on column sluice_state.shard.until is
    'The supplier''s time when the shard was begun, less the margin: no watermark goes above it. Null before its first page.';
comment on column sluice_state.shard.supplied_at is 'The supplier''s time at its last page. What is dated later lies ahead of its time.';

alter table sluice_state.run
    add column replays text,
    drop constraint run_mode_check,
    add constraint run_mode_check check (mode in ('incremental', 'full', 'rollback', 'replay')),
    add constraint run_replays_check check ((mode = 'replay') = (replays is not null));
comment on column sluice_state.run.replays is
    'The run whose raw data a replay maps again, by name, since that may be removed before; null for every other mode.';

alter table sluice_state.lease add column kept_until timestamptz;
comment on column sluice_state.lease.kept_until is
    'Until when its run may be silent, as it waits for a supplier: no sign of life lets it end before. Null: it never waited.';

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
comment on column sluice_state.access_token.expires_at is 'When it is renewed, a little before it ends; null: when the supplier refuses it.';
