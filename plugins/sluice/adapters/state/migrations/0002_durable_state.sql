-- Flights with followers, shards that begin again, calls to others, and what all workers know of a supplier.
--
-- Control state (lease, call, breaker, rate) is written synchronously, one row at a time, by the database's clock, and loses
-- nothing. Task state (run, shard, artifact, review, decision, dead_letter, watermark) is written at checkpoints. Session state
-- (event, progress) may lose what was not yet written; it is never read to decide anything. `sluice/model/state_class.py`
-- names the class of each table.

alter table sluice_state.run
    add column force boolean not null default false,
    add column follows text references sluice_state.run (id) on delete set null,
    add column expires_at timestamptz;
create index run_by_followed on sluice_state.run (follows) where follows is not null;
create index run_by_expiry on sluice_state.run (expires_at) where expires_at is not null;

comment on column sluice_state.run.force is 'Whether no other run''s result or checkpoints would do.';
comment on column sluice_state.run.follows is 'The run of the same request whose outcome it takes; null: it works itself.';
comment on column sluice_state.run.expires_at is 'When its state may be removed; null while it may go on.';

alter table sluice_state.shard add column epoch integer not null default 0 check (epoch >= 0);
comment on column sluice_state.shard.epoch is 'How often it was begun again from its first page.';

alter table sluice_state.artifact add column superseded_at timestamptz;
comment on column sluice_state.artifact.superseded_at is 'Since when it counts no more, being lost, damaged or of an older epoch.';
