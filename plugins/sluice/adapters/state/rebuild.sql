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
    undoes = %(undoes)s,
    replays = %(replays)s,
    redrives = %(redrives)s,
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
-- Make a shard's row one that can be read, to be begun again at once.
update sluice_state.shard set
    params = %(params)s, transformer_version = %(transformer_version)s, status = %(status)s, failure_error = null,
    failure_message = null, state_version = %(state_version)s
where run = %(run)s and key = %(key)s

-- name: lock_review
-- A review and the decision about it, as nobody can change them meanwhile.
select review.*, choice, decided_by, via, comment, at
from sluice_state.review left join sluice_state.decision on decision.review = review.id
where review.id = %(review)s for update of review

-- name: remove_review
-- Remove a review, and with it what was decided about it.
delete from sluice_state.review where id = %(review)s
