-- Numbers the commits of a database that write to one of its tables, and stands still in the one whose number is in chaos.hold,
-- until the advisory lock that the test has is released. Deferred constraint triggers are fired by COMMIT itself. What is written by
-- the clock is left out (renewals alone, progress, breakers, rates), or counts would differ from run to run.
create schema chaos;
create sequence chaos.commits;
create table chaos.hold (number bigint);

create function chaos.in_commit() returns trigger language plpgsql as $$
declare
    this constant text := pg_current_xact_id()::text;
begin
    if current_setting('chaos.counted', true) is distinct from this then
        perform set_config('chaos.counted', this, true);
        if nextval('chaos.commits') = (select number from chaos.hold) then
            perform pg_advisory_xact_lock(1659);
        end if;
    end if;
    return null;
end
$$;

do $$
declare
    place regclass;
begin
    for place in
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('sluice_state', 'sluice_ledger') and c.relkind = 'r' and not c.relispartition
            and c.relname not in ('migration', 'lease', 'breaker', 'rate', 'progress')
    loop
        execute format(
            'create constraint trigger chaos after insert or update or delete on %s
            deferrable initially deferred for each row execute function chaos.in_commit()', place
        );
    end loop;
end
$$;
