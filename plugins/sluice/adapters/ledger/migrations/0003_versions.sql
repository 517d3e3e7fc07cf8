-- Versions of the transformation live side by side: what became of an object says by which one.

alter table sluice_ledger.object_event add column transformer_version integer check (transformer_version >= 1);
comment on column sluice_ledger.object_event.transformer_version is
    'The version of the transformation by which it happened; null: an older release wrote it.';
