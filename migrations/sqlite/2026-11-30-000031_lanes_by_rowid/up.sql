-- Without a rowid, rows are the keys of the table's tree. Those with an error did not fit into a page of 1024 bytes, and
-- each search compared them whole: updates wrote four times as much, and scans took 40 times as long.
create table lanes_copy as select
    service_id, lane, epoch, ended, last_committed_seq, batch_seq, batch_id, created_at,
    position, blocker_seq, submitted, dlt_status, commit_proven, earlier_may_arrive,
    invalid_reported, attempts, submitted_at, since, checked_at, next_try_at, delays,
    delayed_since, refusals, not_accepted, last_error, held_at, held_reason,
    held_until_decision, pool_parked, by_pool
from lanes;
drop table lanes;
create table lanes (
    service_id text not null references services,
    lane integer not null,
    epoch integer not null default 0,
    ended integer not null default 0,
    last_committed_seq integer,
    batch_seq integer,
    batch_id blob,
    created_at integer,
    position integer,
    blocker_seq integer,
    submitted integer not null default 0 check (submitted in (0, 1)),
    dlt_status text,
    commit_proven integer not null default 0 check (commit_proven in (0, 1)),
    earlier_may_arrive integer not null default 0 check (earlier_may_arrive in (0, 1)),
    invalid_reported integer not null default 0 check (invalid_reported in (0, 1)),
    attempts integer not null default 0,
    submitted_at integer,
    since integer,
    checked_at integer,
    next_try_at integer,
    delays integer not null default 0,
    delayed_since integer,
    refusals integer not null default 0,
    not_accepted integer not null default 0,
    last_error text,
    held_at integer,
    held_reason text,
    held_until_decision integer not null default 0 check (held_until_decision in (0, 1)),
    busy integer not null generated always as (batch_seq is not null) stored,
    pool_parked integer not null default 0,
    by_pool integer not null default 0,
    primary key (service_id, lane),
    check ((batch_seq is null) = (batch_id is null) and (batch_seq is null) = (created_at is null)),
    check (
        dlt_status is null
        or dlt_status = 'UNKNOWN'
        or (dlt_status = 'DELAYED' and not submitted)
        or (dlt_status in ('PENDING', 'VALID') and submitted)
    ),
    check (not commit_proven or (submitted and dlt_status is null)),
    check (not invalid_reported or (submitted and dlt_status is not null)),
    check ((held_at is null) = (held_reason is null)),
    check (held_at is not null or not held_until_decision),
    check (
        held_at is null or held_until_decision or (submitted and dlt_status is not null)
    ),
    check (batch_seq is not null or (not submitted and dlt_status is null))
) strict;
insert into lanes (
    service_id, lane, epoch, ended, last_committed_seq, batch_seq, batch_id, created_at,
    position, blocker_seq, submitted, dlt_status, commit_proven, earlier_may_arrive,
    invalid_reported, attempts, submitted_at, since, checked_at, next_try_at, delays,
    delayed_since, refusals, not_accepted, last_error, held_at, held_reason,
    held_until_decision, pool_parked, by_pool
) select
    service_id, lane, epoch, ended, last_committed_seq, batch_seq, batch_id, created_at,
    position, blocker_seq, submitted, dlt_status, commit_proven, earlier_may_arrive,
    invalid_reported, attempts, submitted_at, since, checked_at, next_try_at, delays,
    delayed_since, refusals, not_accepted, last_error, held_at, held_reason,
    held_until_decision, pool_parked, by_pool
from lanes_copy;
drop table lanes_copy;
create index lanes_busy on lanes (service_id, lane) where busy;
