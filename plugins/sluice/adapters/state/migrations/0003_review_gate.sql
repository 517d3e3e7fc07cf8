-- What a person decides by is kept beside the figures of a review, as artifacts; and a run may take a publication back.
--
-- A newer review of a sync supersedes those of other runs that it covers. Whoever saves it has the lock of its own run only, and
-- takes the others' reviews in the order of their ordinals: a decision locks one review behind its run, so the two never wait in
-- a circle.

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
    add column report jsonb check (jsonb_typeof(report) = 'object');
comment on column sluice_state.review.evidence is 'Pointer to what a person decides by: changed fields, profile, drift, counts per shard.';
comment on column sluice_state.review.report is 'Pointer to the packet: the same as a page to be read offline.';

alter table sluice_state.decision add column deletes_at_most bigint check (deletes_at_most >= 0);
comment on column sluice_state.decision.deletes_at_most is 'How many deletions were let through; null: as many as the review has.';
