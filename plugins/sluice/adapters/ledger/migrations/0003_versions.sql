-- Versions of the transformation live side by side: what became of an object says by which one, and so does a publication.

alter table sluice_ledger.object_event add column transformer_version integer check (transformer_version >= 1);
comment on column sluice_ledger.object_event.transformer_version is
    'The version of the transformation by which it happened; null: an older release wrote it.';

alter table sluice_ledger.publication add column transformer_versions integer[];
comment on column sluice_ledger.publication.transformer_versions is
    'The versions of the transformation by which what it wrote was made; null: an older release wrote it.';
