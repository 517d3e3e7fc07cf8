-- Flights with followers, shards that begin again, calls to others, and what all workers know of a supplier.
--
-- A run that is opened while another one of its request is alive does not fail any more: it follows that one, waiting, without a
-- lease. Whoever opens it again looks what has become of its owner; all of that happens under the lock of the request's lease.
--
-- A lease is extended by the writes of its run, and by a heartbeat for as long as its work moves. One of a run that has ended, or
-- waits, is given back in the transaction that extended it.
--
-- A call is locked behind the runs that it is of; several runs are locked in the order of their ids. Breakers and rates are locked
-- alone.
--
-- Control state (lease, call, breaker, rate) is written synchronously, one row at a time, by the database's clock, and loses
-- nothing. Task state (run, shard, artifact, review, decision, dead_letter, watermark) is written at checkpoints. Session state
-- (event, progress) may lose what was not yet written; it is never read to decide anything. `sluice/model/state_class.py`
-- names the class of each table.

alter table sluice_state.run
    add column force boolean not null default false,
    add column follows text references sluice_state.run (id) on delete set null,
    add column follows_since timestamptz,
    add column state_ttl interval not null default interval '365 days',
    add column session_ttl interval not null default interval '7 days',
    -- In UTC: a day is 24 hours, whatever zone a session speaks, so that whoever ends a run need not reckon.
    add column expires_at timestamptz
        generated always as ((finished_at at time zone 'UTC' + state_ttl) at time zone 'UTC') stored;
create index run_by_followed on sluice_state.run (follows) where follows is not null;
create index run_by_expiry on sluice_state.run (expires_at) where expires_at is not null;

comment on column sluice_state.run.force is 'Whether no other run''s result or checkpoints would do.';
comment on column sluice_state.run.follows is 'The run of the same request whose outcome it takes; null: it works itself.';
comment on column sluice_state.run.follows_since is 'Since when it has waited for runs of its request, by this database''s clock.';
comment on column sluice_state.run.state_ttl is 'How long it is kept once it has ended, as its stage had it when it was admitted.';
comment on column sluice_state.run.session_ttl is 'How long its events and progress are kept once it has ended.';
comment on column sluice_state.run.expires_at is 'When its state may be removed; null while it may go on.';

alter table sluice_state.shard add column epoch integer not null default 0 check (epoch >= 0);
comment on column sluice_state.shard.epoch is 'How often it was begun again from its first page.';

alter table sluice_state.artifact
    add column superseded_at timestamptz,
    drop constraint artifact_kind_check,
    add constraint artifact_kind_check check (kind in ('spec', 'run', 'raw', 'rows', 'rejects', 'diff', 'undo', 'report'));
create index artifact_by_key on sluice_state.artifact (key);
create index artifact_by_expiry on sluice_state.artifact (expires_at) where not pinned;
create index dead_letter_by_artifact on sluice_state.dead_letter (raw_artifact) where status = 'open';
comment on column sluice_state.artifact.superseded_at is 'Since when it counts no more, being lost, damaged or of an older epoch.';

-- No foreign key to the run: what was asked of others stays known as long as it is asked for, whatever becomes of the run's state.
create table sluice_state.call (
    key text primary key,
    sync text not null,
    run text not null,
    subject text not null,
    name text not null,
    begun integer not null default 0 check (begun >= 0),
    trouble text,
    accepted boolean,
    answer text,
    noted_at timestamptz not null default clock_timestamp(),
    answered_at timestamptz,
    expires_at timestamptz not null,
    constraint call_answer_whole check ((accepted is null) = (answer is null) and (answer is null) = (answered_at is null)),
    constraint call_begun_first check (answer is null or begun > 0)
) with (fillfactor = 70);
create index call_by_run on sluice_state.call (run);
create index call_left on sluice_state.call (sync, noted_at) where accepted is null;
create index call_by_expiry on sluice_state.call (expires_at);

comment on table sluice_state.call is 'Calls with side effects: the intent is committed before the call, the result after it.';
comment on column sluice_state.call.key is 'The idempotency key, which the receiver is told.';
comment on column sluice_state.call.sync is 'The sync.';
comment on column sluice_state.call.run is 'The run that noted it.';
comment on column sluice_state.call.subject is 'What it is about: the id of a review.';
comment on column sluice_state.call.name is 'Who is called: the name of a webhook.';
comment on column sluice_state.call.begun is 'How often its intent was committed; 0: it is due once something else has happened.';
comment on column sluice_state.call.trouble is 'Why the last try brought no result, free of secrets.';
comment on column sluice_state.call.accepted is 'Whether the receiver accepted it; null: not known.';
comment on column sluice_state.call.answer is 'What the receiver answered, free of secrets.';
comment on column sluice_state.call.noted_at is 'When it was noted first.';
comment on column sluice_state.call.answered_at is 'When the result was kept.';
comment on column sluice_state.call.expires_at is 'From then on it counts as absent, by this database''s clock.';

alter table sluice_state.event drop constraint event_subject_check;
alter table sluice_state.event
    add constraint event_subject_check check (subject in ('run', 'shard', 'review', 'call'));
comment on table sluice_state.event is 'Append-only: every transition of a run, its shards, its reviews and its calls.';
comment on column sluice_state.event.name is 'Which one: the id of the run or review, the key of the shard, the name of who is called.';

create table sluice_state.breaker (
    host text not null,
    stage text not null,
    ticks timestamptz[] not null default '{}',
    tries bigint[] not null default '{}',
    failures bigint[] not null default '{}',
    resting_until timestamptz,
    probed_until timestamptz,
    reason text,
    primary key (host, stage),
    constraint breaker_counts_whole check (cardinality(ticks) = cardinality(tries) and cardinality(ticks) = cardinality(failures)),
    constraint breaker_rest_whole check ((resting_until is null) = (reason is null)),
    constraint breaker_probe_after_rest check (probed_until is null or resting_until is not null)
) with (fillfactor = 50);

comment on table sluice_state.breaker is 'How the suppliers'' hosts have been doing, and which of them are left alone. Control state.';
comment on column sluice_state.breaker.host is 'Name and port of the host.';
comment on column sluice_state.breaker.stage is 'The stage whose workers share it.';
comment on column sluice_state.breaker.ticks is 'Beginnings of the twentieths of the stage''s window in which tries were counted.';
comment on column sluice_state.breaker.tries is 'How many tries were counted in each of ticks.';
comment on column sluice_state.breaker.failures is 'How many of them failed.';
comment on column sluice_state.breaker.resting_until is 'Until when no try is made, one at a time after that; null: it is closed.';
comment on column sluice_state.breaker.probed_until is 'How long the try after the rest may take; it also tells one such try from another.';
comment on column sluice_state.breaker.reason is 'Why the supplier is left alone; null: it is not.';

create table sluice_state.rate (
    host text not null,
    stage text not null,
    next_at timestamptz not null,
    primary key (host, stage)
) with (fillfactor = 50);

comment on table sluice_state.rate is 'When the suppliers'' hosts may be asked next, where a stage limits that. Control state.';
comment on column sluice_state.rate.host is 'Name and port of the host.';
comment on column sluice_state.rate.stage is 'The stage whose workers share it.';
comment on column sluice_state.rate.next_at is 'The first slot that nobody has reserved.';

-- Told every few seconds at most, and never fenced by an error: what is told of another chunk than the shard's open one, or under
-- another token, is out of date and counts for nothing. Hence neither a checkpoint nor a new claim has to write here.
create table sluice_state.progress (
    run text not null,
    shard text collate "C" not null,
    token bigint not null,
    chunk integer not null check (chunk >= 0),
    pages bigint not null check (pages >= 0),
    records bigint not null check (records >= 0),
    bytes bigint not null check (bytes >= 0),
    told_at timestamptz not null default now(),
    primary key (run, shard),
    foreign key (run, shard) references sluice_state.shard (run, key) on delete cascade
) with (fillfactor = 50);

comment on table sluice_state.progress is 'What open chunks hold, for whoever watches; nothing is decided by it. Session state.';
comment on column sluice_state.progress.run is 'The run.';
comment on column sluice_state.progress.shard is 'The shard.';
comment on column sluice_state.progress.token is 'The shard''s token of whoever tells it.';
comment on column sluice_state.progress.chunk is 'The seq of the open chunk.';
comment on column sluice_state.progress.pages is 'Pages of the open chunk.';
comment on column sluice_state.progress.records is 'Records on those pages.';
comment on column sluice_state.progress.bytes is 'Bytes of those pages.';
comment on column sluice_state.progress.told_at is 'When it was told.';
