-- name: append
-- Append an event to a run's journal, under the next number.
with numbered as (
    update sluice_state.run set last_event = last_event + 1 where id = %(run)s returning last_event
)
insert into sluice_state.event (run, seq, subject, name, event, status, facts)
select %(run)s, last_event, %(subject)s, %(name)s, %(event)s, %(status)s, %(facts)s from numbered
