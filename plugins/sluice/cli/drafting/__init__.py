"""Drafts of new syncs: what a person says of a supplier in; the text of spec, stage and DAG file out."""
