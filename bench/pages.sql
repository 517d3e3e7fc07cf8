-- A year of daily runs of each sync.
insert into sluice_state.run (id, sync, stage, tenant, request_key, mode, shards, review_mode, spec_hash, transformer_version,
    status, step, token, lease_ttl, last_event, state_version, created_at, finished_at)
select sync || '-' || day, sync, 'hotel-content', 'default', sync || '-' || day, 'full', '{}', 'policy', repeat('5', 64), 1,
    case when day %% 29 = 0 then 'failed' else 'succeeded' end, 'settle', day, '1 minute', 0, 5,
    now() - make_interval(days => 365 - day), now() - make_interval(days => 365 - day) + interval '9 minutes'
from generate_series(1, 365) as day, (select 'sync_' || n as sync from generate_series(1, %(syncs)s) as n) as named
order by day;

-- A review of each; one in fifty changed something.
insert into sluice_state.review (id, run, sync, digest, figures, reasons, verdict, diff, state_version, created_at)
select 'review-' || id, id, sync, id, jsonb_build_object('seen', 9, 'unchanged', 7, 'live_before', 9, 'vanished', 0, 'moved', 0,
    'outcomes', jsonb_build_object('changed', case when token %% 50 = 0 then 12 else 0 end)), '{}', 'auto-approved', '{}', 3, created_at
from sluice_state.run;

-- A thousand dead letters of each sync.
insert into sluice_state.dead_letter (sync, object_key, run, shard, error, message, raw_artifact, raw_frame, raw_index, attempts,
    status, first_seen, last_seen, raw_hash)
select sync, 'hotel-' || n, sync || '-1', 'all', 'out-of-range', 'stars: 7 is above 5', 'raw', 0, n, 1, 'open', now(), now(), decode(md5(sync || n), 'hex')
from generate_series(1, 1000) as n, (select distinct sync from sluice_state.run) as named;

-- A run that goes on.
insert into sluice_state.run (id, sync, stage, tenant, request_key, mode, shards, review_mode, spec_hash, transformer_version,
    status, step, token, lease_ttl, last_event, state_version, created_at)
values ('big', 'sync_1', 'hotel-content', 'default', 'big', 'full', '{}', 'policy', repeat('5', 64), 1, 'running', 'fetch', 999,
    '1 hour', 2 * %(shards)s, 5, now() - interval '10 minutes');

-- Its shards.
insert into sluice_state.shard (run, key, params, status, exhausted, chunks, pages, records, attempt, token, state_version, progress_at)
select 'big', 'region-' || n, '{"region": "north"}', case when n %% 10 = 0 then 'running' else 'succeeded' end, n %% 10 <> 0, 1, 2, 1000, 1,
    n, 4, now()
from generate_series(1, %(shards)s) as n;

-- What happened to them.
insert into sluice_state.event (run, seq, subject, name, event, status, facts)
select 'big', 2 * n - 1, 'shard', 'region-' || n, 'claim', 'running', '{"attempt": 1}'::jsonb from generate_series(1, %(shards)s) as n
union all
select 'big', 2 * n, 'shard', 'region-' || n, 'succeed', 'succeeded', '{}'::jsonb from generate_series(1, %(shards)s) as n;
