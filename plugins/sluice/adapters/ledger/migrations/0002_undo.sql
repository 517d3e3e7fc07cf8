-- A publication can be taken back by another one, which is a publication like any other: with a record, and to be taken back itself.

alter table sluice_ledger.publication
    add column approved_by text,
    add column undoes bigint references sluice_ledger.publication (id),
    add constraint publication_undoes_earlier check (undoes < id);
create unique index publication_by_undone on sluice_ledger.publication (undoes) where undoes is not null;

comment on column sluice_ledger.publication.applied_at is 'When it was applied: within a sync, each later than the one before.';
comment on column sluice_ledger.object_event.at is 'When the publication was applied.';
comment on column sluice_ledger.object.row_hash is
    'xxh3-128 of the row, under the spec of the run that wrote it: equal rows are not written.';
comment on column sluice_ledger.publication.approved_by is 'Who let it pass, or policy; null if an old release published it.';
comment on column sluice_ledger.publication.undoes is 'The earlier publication that this one took back; null for most.';
