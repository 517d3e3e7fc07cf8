-- A shard may be transformed by another version than most of its run, and a run may take up dead letters again, or map what all
-- runs of a window have fetched.

alter table sluice_state.shard add column transformer_version integer check (transformer_version >= 1);
comment on column sluice_state.shard.transformer_version is
    'The version of the transformation that makes its rows; null: the one of its run, planned by an older release.';

alter table sluice_state.run
    add column redrives jsonb check (jsonb_typeof(redrives) = 'object'),
    drop constraint run_mode_check,
    add constraint run_mode_check check (mode in ('incremental', 'full', 'rollback', 'replay', 'redrive')),
    drop constraint run_replays_check,
    add constraint run_replays_check check (
        (replays is null or mode = 'replay') and (mode <> 'replay' or (replays is null) = (window_start is not null))
    ),
    add constraint run_redrives_mode check ((mode = 'redrive') = (redrives is not null));
comment on column sluice_state.run.replays is
    'The run whose raw data a replay maps again, by name, since that may be removed before; null for what it maps of a window, and for every other mode.';
comment on column sluice_state.run.redrives is 'Which dead letters it takes up again; null for every other mode.';
