-- name: lock_run
-- A run, as nobody can change it meanwhile.
select * from sluice_state.run where id = %(run)s for update

-- name: write_run
-- Write a run anew as it was admitted, its token spent.
update sluice_state.run set
    sync = %(sync)s,
    stage = %(stage)s,
    tenant = %(tenant)s,
    request_key = %(request_key)s,
    mode = %(mode)s,
    window_start = %(window_start)s,
    window_end = %(window_end)s,
    shards = %(shards)s,
    review_mode = %(review_mode)s,
    force = %(force)s,
    spec_hash = %(spec_hash)s,
    transformer_version = %(transformer_version)s,
    dag_id = %(dag_id)s,
    dag_run_id = %(dag_run_id)s,
    status = %(status)s,
    step = %(step)s,
    token = nextval('sluice_state.token_seq'),
    failure_error = %(failure_error)s,
    failure_message = %(failure_message)s,
    state_version = %(state_version)s,
    created_at = %(created_at)s,
    finished_at = case when %(is_final)s then coalesce(finished_at, now()) end
where id = %(id)s

-- name: lock_shard
-- A shard, as nobody can change it meanwhile.
select * from sluice_state.shard where run = %(run)s and key = %(key)s for update

-- name: write_shard
-- Begin a shard anew, in an epoch of its own, its token spent; only its watermark, the lower bound of its requests, stays.
update sluice_state.shard set
    params = %(params)s,
    status = %(status)s,
    epoch = epoch + 1,
    cursor = null,
    exhausted = false,
    high_mark = null,
    chunks = 0,
    pages = 0,
    records = 0,
    token = nextval('sluice_state.token_seq'),
    failure_error = null,
    failure_message = null,
    state_version = %(state_version)s
where run = %(run)s and key = %(key)s
returning epoch

-- name: supersede_artifacts
-- Let what was fetched of a shard, and made of it, count no more, the diffs of its run included.
update sluice_state.artifact set superseded_at = now()
where run = %(run)s and (shard = %(key)s or kind = 'diff') and superseded_at is null

-- name: lock_review
-- A review and the decision about it, as nobody can change them meanwhile.
select review.*, choice, decided_by, via, comment, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where review.id = %(review)s for update of review

-- name: remove_review
-- Remove a review, and with it what was decided about it.
delete from sluice_state.review where id = %(review)s
