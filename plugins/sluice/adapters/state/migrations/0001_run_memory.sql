-- Theory of operation
-- ===================
-- This schema is what a run knows of itself, so that a process may be killed at any instruction and another may go on. The
-- bytes are in the object store; here are only pointers to them. An artifact is there, and verified, before a row names it.
--
-- Fencing. Whoever works holds a token out of one sequence: a run's when a step enters it, a shard's when it is claimed. The
-- row keeps the newest; every later write demands, in its WHERE, that the row still holds the writer's. Somebody who was
-- taken for dead and wakes up therefore changes nothing, whatever he was about to write.
--
-- Flights. Of all runs that ask for the same (`request_key`) one at a time works: the owner of the row in `lease`. The lease
-- ends by the clock of this database, so that the clocks of the workers never matter. Opening a run takes the flight or fails;
-- every write of the run extends it for as long as the run was opened with (`lease_ttl`), hence a run that makes progress
-- never loses it. A run that ends, or that waits for a person, gives it back. Where a lease ran out, the next run of the
-- request ends the dead one, spends its tokens, and goes on from copies of its shards and pointers.
--
-- Transitions. Which status may follow which is in `sluice/model/lifecycle.py` alone. Every UPDATE names the statuses it may
-- leave and the token it was made with, and returns the row; no row is an error, never silence. The CHECKs here only keep
-- apart what no history could have brought together.
--
-- Locks. A transaction locks in this order, so that no two wait for each other: the lease, the run, its shards by key, their
-- artifacts, its reviews, dead letters and watermarks by key.
--
-- Checkpoints. A raw chunk's pointer and the cursor behind it are written in one transaction: there is no pointer without its
-- cursor, which would fetch pages twice, and no cursor without its pointer, which would lose them.
--
-- Events. Each transition appends a row to `event` in its own transaction, numbered within its run by a counter on the run's
-- row. Who follows a run asks for the numbers behind the last he saw, and misses none: the counter's row lock makes numbers
-- visible in order.
--
-- Versions. A row that a later release may read differently carries `state_version`. One that is higher than a worker knows is
-- refused by that worker. Texts of keys are compared byte by byte (collation "C"), as Python compares them.

comment on schema sluice_state is 'What runs know of themselves: flights, checkpoints, pointers, reviews and decisions.';
comment on table sluice_state.migration is 'The revision this schema is at.';
comment on column sluice_state.migration.version_num is 'The last migration applied.';

create sequence sluice_state.token_seq;
comment on sequence sluice_state.token_seq is 'Fencing tokens of runs and shards: one sequence, so that any two can be compared.';

create table sluice_state.run (
    id text primary key,
    ordinal bigint generated always as identity unique,
    sync text not null,
    stage text not null,
    tenant text not null,
    request_key text not null,
    mode text not null check (mode in ('incremental', 'full')),
    window_start timestamptz,
    window_end timestamptz,
    shards text[] not null default '{}',
    review_mode text not null check (review_mode in ('policy', 'always')),
    spec_hash text not null,
    transformer_version integer not null check (transformer_version >= 1),
    dag_id text,
    dag_run_id text,
    status text not null
        check (status in ('pending', 'running', 'waiting', 'succeeded', 'partial', 'failed', 'cancelled')),
    step text not null
        check (step in ('admit', 'shard', 'fetch', 'transform', 'review', 'gate', 'publish', 'settle')),
    token bigint not null,
    lease_ttl interval not null,
    failure_error text,
    failure_message text,
    last_event bigint not null default 0,
    state_version integer not null,
    created_at timestamptz not null,
    finished_at timestamptz,
    constraint run_window_whole check ((window_start is null) = (window_end is null) and window_start <= window_end),
    constraint run_failure_whole check ((failure_error is null) = (failure_message is null)),
    constraint run_finished check (
        (finished_at is not null) = (status in ('succeeded', 'partial', 'failed', 'cancelled'))
    )
) with (fillfactor = 80);
create index run_by_request on sluice_state.run (request_key, ordinal desc);
create index run_by_sync on sluice_state.run (sync, ordinal desc);

comment on table sluice_state.run is 'Executions of syncs; in Airflow exactly one DagRun each.';
comment on column sluice_state.run.id is 'Its name, given by whoever executes it.';
comment on column sluice_state.run.ordinal is 'Grows with every run admitted: what "newest" means.';
comment on column sluice_state.run.sync is 'The sync it executes.';
comment on column sluice_state.run.stage is 'The business category whose policy governs it.';
comment on column sluice_state.run.tenant is 'Whose data it is.';
comment on column sluice_state.run.request_key is 'Equal for runs that ask for the same; the key of its flight.';
comment on column sluice_state.run.mode is 'How much of the supplier it looks at.';
comment on column sluice_state.run.window_start is 'First instant of its window; null if it has none.';
comment on column sluice_state.run.window_end is 'First instant behind its window; null if it has none.';
comment on column sluice_state.run.shards is 'The keys of the shards asked for; empty: all.';
comment on column sluice_state.run.review_mode is 'Whether policy may approve by itself.';
comment on column sluice_state.run.spec_hash is 'SHA-256 of the spec it was admitted with; the spec is an artifact.';
comment on column sluice_state.run.transformer_version is 'The version of the transformation.';
comment on column sluice_state.run.dag_id is 'The DAG that executes it; null outside Airflow.';
comment on column sluice_state.run.dag_run_id is 'The DagRun that executes it; null outside Airflow.';
comment on column sluice_state.run.status is 'How it is doing.';
comment on column sluice_state.run.step is 'Where it stands.';
comment on column sluice_state.run.token is 'The fencing token of whoever entered it last.';
comment on column sluice_state.run.lease_ttl is 'How long a sign of life keeps its flight.';
comment on column sluice_state.run.failure_error is 'Class of the error that ended it; null if none did.';
comment on column sluice_state.run.failure_message is 'Message of that error, free of secrets.';
comment on column sluice_state.run.last_event is 'Number of its newest event.';
comment on column sluice_state.run.state_version is 'Version of the meaning of this row.';
comment on column sluice_state.run.created_at is 'When it was asked for.';
comment on column sluice_state.run.finished_at is 'When it ended; null while it may go on by itself.';

create table sluice_state.shard (
    run text not null references sluice_state.run (id) on delete cascade,
    key text collate "C" not null check (key <> ''),
    params jsonb not null check (jsonb_typeof(params) = 'object'),
    status text not null check (status in ('pending', 'running', 'succeeded', 'failed', 'skipped')),
    cursor jsonb,
    exhausted boolean not null default false,
    watermark text,
    high_mark text,
    chunks integer not null default 0 check (chunks >= 0),
    pages bigint not null default 0 check (pages >= 0),
    records bigint not null default 0 check (records >= 0),
    attempt integer not null default 0 check (attempt >= 0),
    token bigint not null default 0,
    failure_error text,
    failure_message text,
    state_version integer not null,
    progress_at timestamptz,
    primary key (run, key),
    constraint shard_failure_whole check ((failure_error is null) = (failure_message is null)),
    constraint shard_failed check ((failure_error is not null) = (status = 'failed')),
    constraint shard_succeeded check (status <> 'succeeded' or exhausted)
) with (fillfactor = 80);
create index shard_pending on sluice_state.shard (run, key) where status = 'pending';

comment on table sluice_state.shard is 'The units of scheduling, retry and resume, and how far each has come.';
comment on column sluice_state.shard.run is 'The run it belongs to.';
comment on column sluice_state.shard.key is 'Its name within the run.';
comment on column sluice_state.shard.params is 'The values its requests are made with.';
comment on column sluice_state.shard.status is 'How it is doing.';
comment on column sluice_state.shard.cursor is 'Points behind the last checkpointed page; opaque to all but the paginator.';
comment on column sluice_state.shard.exhausted is 'Whether no page follows.';
comment on column sluice_state.shard.watermark is 'The lower bound its requests use, fixed when it was planned.';
comment on column sluice_state.shard.high_mark is 'The highest watermark value seen, to be published.';
comment on column sluice_state.shard.chunks is 'Raw chunks with a committed pointer; the seq of the next one.';
comment on column sluice_state.shard.pages is 'Pages in those chunks.';
comment on column sluice_state.shard.records is 'Records on those pages.';
comment on column sluice_state.shard.attempt is 'How often it was claimed.';
comment on column sluice_state.shard.token is 'The fencing token of whoever claimed it last; 0 before the first claim.';
comment on column sluice_state.shard.failure_error is 'Class of the error it gave up with.';
comment on column sluice_state.shard.failure_message is 'Message of that error, free of secrets.';
comment on column sluice_state.shard.state_version is 'Version of the meaning of this row.';
comment on column sluice_state.shard.progress_at is 'When it last came further; null if it never did.';

-- One row for each ref. Runs that go on from another's checkpoints hold pointers of their own to the same key.
create table sluice_state.artifact (
    id bigint generated always as identity primary key,
    run text not null references sluice_state.run (id) on delete cascade,
    sync text not null,
    kind text not null check (kind in ('spec', 'raw', 'rows', 'rejects', 'diff', 'undo', 'report')),
    shard text collate "C",
    seq integer not null check (seq >= 0),
    variant text collate "C" not null default '',
    key text not null,
    bytes bigint not null check (bytes >= 0),
    sha256 text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    records bigint not null check (records >= 0),
    expires_at timestamptz,
    pinned boolean not null default false,
    foreign key (run, shard) references sluice_state.shard (run, key) on delete cascade
);
create unique index artifact_ref on sluice_state.artifact (run, kind, coalesce(shard, ''), seq, variant);

comment on table sluice_state.artifact is 'Pointers: all that state keeps of the bytes in the object store.';
comment on column sluice_state.artifact.id is 'Grows with every pointer.';
comment on column sluice_state.artifact.run is 'The run it belongs to.';
comment on column sluice_state.artifact.sync is 'The sync it belongs to.';
comment on column sluice_state.artifact.kind is 'What the bytes are.';
comment on column sluice_state.artifact.shard is 'The shard it belongs to; null if to the run as a whole.';
comment on column sluice_state.artifact.seq is 'Consecutive number within run, kind and shard.';
comment on column sluice_state.artifact.variant is 'What sets a second version apart.';
comment on column sluice_state.artifact.key is 'The object''s key within the bucket.';
comment on column sluice_state.artifact.bytes is 'Stored size, after compression.';
comment on column sluice_state.artifact.sha256 is 'SHA-256 of the stored bytes, in hex.';
comment on column sluice_state.artifact.records is 'How many records it holds.';
comment on column sluice_state.artifact.expires_at is 'When it may be removed; null: never.';
comment on column sluice_state.artifact.pinned is 'Whether a person wants it kept beyond that.';

create table sluice_state.review (
    id text primary key,
    ordinal bigint generated always as identity unique,
    run text not null references sluice_state.run (id) on delete cascade,
    sync text not null,
    digest text not null,
    figures jsonb not null check (jsonb_typeof(figures) = 'object'),
    reasons text[] not null,
    verdict text not null check (verdict in (
        'auto-approved', 'needs-human', 'blocked', 'approved', 'approved-without-deletes', 'rejected', 'expired', 'superseded'
    )),
    diff jsonb not null check (jsonb_typeof(diff) = 'object'),
    state_version integer not null,
    created_at timestamptz not null
);
create index review_by_run on sluice_state.review (run, ordinal desc);
create index review_waiting on sluice_state.review (ordinal) where verdict in ('needs-human', 'blocked');

comment on table sluice_state.review is 'Diffs of runs against the ledger, in figures, and what was decided about them.';
comment on column sluice_state.review.id is 'Its name, made of the run and the digest.';
comment on column sluice_state.review.ordinal is 'Grows with every review: what "newest" means.';
comment on column sluice_state.review.run is 'The run that was reviewed.';
comment on column sluice_state.review.sync is 'The sync of that run.';
comment on column sluice_state.review.digest is 'SHA-256 over diff, spec and policy: an approval is of this and of nothing else.';
comment on column sluice_state.review.figures is 'What its publication would do, counted.';
comment on column sluice_state.review.reasons is 'Why policy did not approve it; empty if it did.';
comment on column sluice_state.review.verdict is 'What policy or a person has decided.';
comment on column sluice_state.review.diff is 'Pointer to the diff, as it was when it was reviewed.';
comment on column sluice_state.review.state_version is 'Version of the meaning of this row.';
comment on column sluice_state.review.created_at is 'When it was made.';

create table sluice_state.decision (
    review text primary key references sluice_state.review (id) on delete cascade,
    choice text not null check (choice in ('approve', 'approve-without-deletes', 'reject', 'expire')),
    decided_by text not null,
    via text not null,
    comment text not null,
    at timestamptz not null
);

comment on table sluice_state.decision is 'Who answered a review that waited, with what, when and why. Once given it stands.';
comment on column sluice_state.decision.review is 'The review that was answered.';
comment on column sluice_state.decision.choice is 'The answer.';
comment on column sluice_state.decision.decided_by is 'Who gave it.';
comment on column sluice_state.decision.via is 'The way it came: airflow, cli or policy.';
comment on column sluice_state.decision.comment is 'Why.';
comment on column sluice_state.decision.at is 'When it was given.';

-- No foreign key to the run: a dead letter stays until the object comes right, however long ago the run was removed.
create table sluice_state.dead_letter (
    id bigint generated always as identity primary key,
    sync text not null,
    object_key text collate "C",
    run text not null,
    shard text collate "C" not null,
    raw_artifact text not null,
    raw_frame integer not null check (raw_frame >= 0),
    raw_index integer not null check (raw_index >= 0),
    error text not null,
    field text,
    message text not null,
    attempts integer not null default 1 check (attempts >= 1),
    status text not null default 'open' check (status in ('open', 'closed')),
    first_seen timestamptz not null default now(),
    last_seen timestamptz not null default now(),
    constraint dead_letter_seen_in_order check (first_seen <= last_seen)
);
create unique index dead_letter_open_of_object on sluice_state.dead_letter (sync, object_key)
    where status = 'open' and object_key is not null;
create unique index dead_letter_open_without_key on sluice_state.dead_letter (sync, raw_artifact, raw_frame, raw_index)
    where status = 'open' and object_key is null;
create index dead_letter_open on sluice_state.dead_letter (sync, last_seen desc, id desc) where status = 'open';

comment on table sluice_state.dead_letter is 'Objects that could not be taken in, with the address of their raw bytes.';
comment on column sluice_state.dead_letter.id is 'Grows with every dead letter.';
comment on column sluice_state.dead_letter.sync is 'The sync.';
comment on column sluice_state.dead_letter.object_key is 'The object; null if not even its key could be read.';
comment on column sluice_state.dead_letter.run is 'The run that met it last.';
comment on column sluice_state.dead_letter.shard is 'The shard that delivered it last.';
comment on column sluice_state.dead_letter.raw_artifact is 'Key of the raw artifact that holds its bytes.';
comment on column sluice_state.dead_letter.raw_frame is 'Which page of it.';
comment on column sluice_state.dead_letter.raw_index is 'Which record of the page.';
comment on column sluice_state.dead_letter.error is 'What kind of rule it breaks.';
comment on column sluice_state.dead_letter.field is 'The field that breaks it; null if the whole object does.';
comment on column sluice_state.dead_letter.message is 'What is wrong with it.';
comment on column sluice_state.dead_letter.attempts is 'In how many deliveries it was wrong.';
comment on column sluice_state.dead_letter.status is 'Open until the object comes right.';
comment on column sluice_state.dead_letter.first_seen is 'When it was met first.';
comment on column sluice_state.dead_letter.last_seen is 'When it was met last.';

create table sluice_state.watermark (
    sync text not null,
    shard text collate "C" not null,
    value text not null,
    run text not null,
    token bigint not null,
    advanced_at timestamptz not null default now(),
    primary key (sync, shard)
);

comment on table sluice_state.watermark is 'How far incremental fetching has been published.';
comment on column sluice_state.watermark.sync is 'The sync.';
comment on column sluice_state.watermark.shard is 'The shard.';
comment on column sluice_state.watermark.value is 'The highest value published, as text; the publisher knows its order.';
comment on column sluice_state.watermark.run is 'The run that published it.';
comment on column sluice_state.watermark.token is 'That run''s token: an older run may not move it.';
comment on column sluice_state.watermark.advanced_at is 'When it was moved.';

create table sluice_state.lease (
    key text primary key,
    owner text not null references sluice_state.run (id) on delete cascade,
    token bigint not null,
    expires_at timestamptz not null,
    progress_at timestamptz not null
) with (fillfactor = 50);

comment on table sluice_state.lease is 'Flights: which run works on a request.';
comment on column sluice_state.lease.key is 'The request key.';
comment on column sluice_state.lease.owner is 'The run that has the flight.';
comment on column sluice_state.lease.token is 'Out of the token sequence, when the owner took the flight.';
comment on column sluice_state.lease.expires_at is 'When others may take it, by this database''s clock.';
comment on column sluice_state.lease.progress_at is 'The last sign of life.';

create table sluice_state.event (
    run text not null references sluice_state.run (id) on delete cascade,
    seq bigint not null check (seq >= 1),
    at timestamptz not null default clock_timestamp(),
    subject text not null check (subject in ('run', 'shard', 'review')),
    name text not null,
    event text not null,
    status text not null,
    facts jsonb not null check (jsonb_typeof(facts) = 'object'),
    primary key (run, seq)
);

comment on table sluice_state.event is 'Append-only: every transition of a run, its shards and its reviews.';
comment on column sluice_state.event.run is 'The run.';
comment on column sluice_state.event.seq is 'Consecutive number within the run.';
comment on column sluice_state.event.at is 'When it happened.';
comment on column sluice_state.event.subject is 'What it happened to.';
comment on column sluice_state.event.name is 'Which one: the id of the run or review, the key of the shard.';
comment on column sluice_state.event.event is 'What happened.';
comment on column sluice_state.event.status is 'The status or verdict after it.';
comment on column sluice_state.event.facts is 'What else is worth telling, free of row data and secrets.';
