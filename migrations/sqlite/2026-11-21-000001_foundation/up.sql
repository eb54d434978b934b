-- The same tables as for PostgreSQL, where the reasons stand.

create table services (
    service_id text primary key,
    last_created_at integer not null,
    added integer not null
) strict, without rowid;

create table instances (
    instance_id text primary key,
    name text unique,
    expiry_1 integer not null,
    expiry_2 integer not null,
    check (expiry_1 <= expiry_2)
) strict, without rowid;

create table service_id_claims (
    service_id text primary key references services,
    claimant text references instances on delete set null,
    epoch integer not null default 0
) strict, without rowid;
create index service_id_claims_by_claimant on service_id_claims (claimant, service_id);

-- autoincrement: a number is never used again, not even that of a batch removed since.
create table batches (
    seq integer primary key autoincrement,
    service_id text not null references services,
    batch_id blob not null check (length(batch_id) = 64),
    created_at integer not null,
    ended_at integer,
    dlt_status text check (dlt_status in ('INVALID', 'COMMITTED')),
    attempts integer not null default 0,
    submitted_at integer,
    checked_at integer,
    last_error text,
    unique (batch_id, service_id),
    unique (service_id, created_at),
    check ((ended_at is null) = (dlt_status is null))
) strict;

create table batch_payloads (
    batch_seq integer primary key references batches on delete cascade,
    serialized_batch blob not null
) strict;

create table transactions (
    batch_seq integer not null references batches on delete cascade,
    position integer not null,
    transaction_id blob not null check (length(transaction_id) = 64),
    primary key (batch_seq, position)
) strict, without rowid;

create table transaction_receipts (
    batch_seq integer not null references batches on delete cascade,
    position integer not null,
    transaction_id blob,
    error_message text not null,
    error_data blob not null,
    primary key (batch_seq, position)
) strict, without rowid;

create table submission_attempts (
    batch_seq integer not null references batches on delete cascade,
    attempt integer not null,
    submitted_at integer,
    ended_at integer not null,
    outcome text not null,
    error text,
    next_try_at integer,
    primary key (batch_seq, attempt)
) strict, without rowid;

create table batch_statuses (
    service_id text not null references services,
    lane integer not null,
    epoch integer not null default 0,
    ended integer not null default 0,
    batch_seq integer,
    batch_id blob,
    created_at integer,
    submitted integer not null default 0 check (submitted in (0, 1)),
    dlt_status text,
    commit_proven integer not null default 0 check (commit_proven in (0, 1)),
    attempts integer not null default 0,
    submitted_at integer,
    since integer,
    checked_at integer,
    next_try_at integer,
    last_error text,
    held_at integer,
    held_reason text,
    busy integer not null generated always as (batch_seq is not null) stored,
    primary key (service_id, lane),
    check ((batch_seq is null) = (batch_id is null) and (batch_seq is null) = (created_at is null)),
    check (
        dlt_status is null
        or dlt_status = 'UNKNOWN'
        or (dlt_status = 'DELAYED' and not submitted)
        or (dlt_status in ('PENDING', 'VALID') and submitted)
    ),
    check (not commit_proven or (submitted and dlt_status is null)),
    check ((held_at is null) = (held_reason is null)),
    check (held_at is null or (submitted and dlt_status is not null)),
    check (batch_seq is not null or (not submitted and dlt_status is null))
) strict, without rowid;
create index batch_statuses_busy on batch_statuses (service_id, lane) where busy;
