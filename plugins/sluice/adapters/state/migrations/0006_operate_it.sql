-- A person may end a run or a shard. It stays ended whatever wakes or is retried, until the DagRun is cleared, which Airflow counts.

alter table sluice_state.run
    add column clearings integer not null default 0 check (clearings >= 0),
    add column called_off_in integer check (called_off_in <= clearings);
comment on column sluice_state.run.clearings is
    'How often its DagRun had been cleared when one of its tasks began last; 0 outside Airflow.';
comment on column sluice_state.run.called_off_in is
    'What `clearings` was when a person cancelled it: nobody enters it before the next; null: nobody has.';

alter table sluice_state.shard add column stopped_in integer;
comment on column sluice_state.shard.stopped_in is
    'What `clearings` of its run was when a person stopped it: nobody claims it before the next; null: nobody has.';

-- The audit trail. It names runs without belonging to them: it outlives them.

create table sluice_state.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    actor text not null check (actor <> ''),
    via text not null check (via <> ''),
    act text not null check (act <> ''),
    sync text,
    run text,
    subject text,
    reason text not null default '',
    facts jsonb not null default '{}' check (jsonb_typeof(facts) = 'object')
);
create index audit_by_sync on sluice_state.audit (sync, id);
create index audit_by_run on sluice_state.audit (run, id);

comment on table sluice_state.audit is 'What people and policy have done that changed something. Nothing of it is changed or removed.';
comment on column sluice_state.audit.id is 'Grows with every entry.';
comment on column sluice_state.audit.at is 'When it was done.';
comment on column sluice_state.audit.actor is 'The person, or policy.';
comment on column sluice_state.audit.via is 'The way they came: airflow, pages, cli or policy.';
comment on column sluice_state.audit.act is 'What was done.';
comment on column sluice_state.audit.sync is 'The sync it was done to; null: to all of them.';
comment on column sluice_state.audit.run is 'The run it was done to, or that it has begun, by name; null: none.';
comment on column sluice_state.audit.subject is 'What it was about: a shard, a review, a publication, a lease or letters; null: the run itself.';
comment on column sluice_state.audit.reason is 'Why, in the words of who did it.';
comment on column sluice_state.audit.facts is 'What else is to be known of it.';

create function sluice_state.keep_audit() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is kept as it was written' using errcode = 'restrict_violation';
end
$$;
comment on function sluice_state.keep_audit() is 'Refuses to change or remove an entry of the audit trail.';
create trigger audit_is_kept before update or delete or truncate on sluice_state.audit
    for each statement execute function sluice_state.keep_audit();

-- Incidents: people are told once that a sync keeps failing, once more if it gets worse, and once that it is over.

create table sluice_state.incident (
    id bigint generated always as identity primary key,
    sync text not null,
    level text not null check (level in ('warn', 'page')),
    runs integer not null check (runs > 0),
    run text not null,
    began_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz
);
create unique index incident_open on sluice_state.incident (sync) where ended_at is null;
create index incident_of_sync on sluice_state.incident (sync, id);

comment on table sluice_state.incident is 'Rows of failing runs that somebody was told of, from the run that reached a level to the next one that succeeded.';
comment on column sluice_state.incident.id is 'Grows with every incident.';
comment on column sluice_state.incident.sync is 'The sync that kept failing; at most one incident of it is open.';
comment on column sluice_state.incident.level is 'The highest level it has reached.';
comment on column sluice_state.incident.runs is 'How many runs in a row had failed when it reached that level.';
comment on column sluice_state.incident.run is 'The run that let it reach that level, by name.';
comment on column sluice_state.incident.began_at is 'When somebody was told of it first.';
comment on column sluice_state.incident.ended_at is 'When a run succeeded; null: the sync still keeps failing.';

comment on column sluice_state.decision.via is 'The way it came: airflow, pages, cli or policy.';
