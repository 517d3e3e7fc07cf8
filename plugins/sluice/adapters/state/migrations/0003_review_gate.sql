-- What a person decides by is kept beside the figures of a review, as artifacts; and a run may take a publication back.
--
-- A newer review of a sync supersedes those of older runs that it covers. Whoever saves it has the lock of its own run, then
-- locks the older runs, the newest first, then their reviews. Nobody who has an older run's lock waits for a newer run's, and a
-- decision locks one review behind its run: so no two wait in a circle.

alter table sluice_state.run
    add column undoes bigint,
    drop constraint run_mode_check,
    add constraint run_mode_check check (mode in ('incremental', 'full', 'rollback')),
    add constraint run_undoes_check check ((mode = 'rollback') = (undoes is not null));
comment on column sluice_state.run.undoes is 'The publication that a rollback takes back; null for every other mode.';

alter table sluice_state.artifact
    drop constraint artifact_kind_check,
    add constraint artifact_kind_check
        check (kind in ('spec', 'run', 'raw', 'rows', 'rejects', 'diff', 'evidence', 'undo', 'conflicts', 'report'));

alter table sluice_state.review
    add column evidence jsonb check (jsonb_typeof(evidence) = 'object'),
    add column report jsonb check (jsonb_typeof(report) = 'object'),
    add column superseded_by text,
    add constraint review_superseded_by_check check (superseded_by is null or verdict = 'superseded');
create index review_by_successor on sluice_state.review (superseded_by) where superseded_by is not null;
comment on column sluice_state.review.evidence is 'Pointer to what a person decides by: changed fields, profile, drift, counts per shard.';
comment on column sluice_state.review.report is 'Pointer to the packet: the same as a page to be read offline.';

comment on column sluice_state.review.superseded_by is
    'The newer review that has taken its place, by name, since that may be removed before; null in what old releases wrote, too.';

alter table sluice_state.decision add column deletes_at_most bigint check (deletes_at_most >= 0);
comment on column sluice_state.decision.deletes_at_most is 'How many deletions were let through; null: as many as the review has.';
