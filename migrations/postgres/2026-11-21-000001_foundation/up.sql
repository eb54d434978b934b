-- Times are microseconds since 1970 (UTC). Ids are the bytes behind the hex digits.
-- Text that names something collates bytewise, as it does on SQLite.

-- One row a service. Whoever adds a batch to a service, or ends one, keeps this row locked until
-- the commit: so the order of created_at is the order of commits.
create table services (
    service_id text collate "C" primary key,
    last_created_at bigint not null,
    -- How many batches were ever added; what its lanes have ended subtracted, the queue's depth.
    added bigint not null
) with (fillfactor = 70);

-- One row a running instance: its claims live as long as it does. Past the first expiry others may
-- take services of which nothing is being sent, past the second all. Zero: another has ended it, and
-- it is renewed no more.
create table instances (
    instance_id text collate "C" primary key,
    -- Where it was given one: no two that run have the same.
    name text collate "C" unique,
    expiry_1 bigint not null,
    expiry_2 bigint not null,
    check (expiry_1 <= expiry_2)
);

-- Who works on a service. The epoch is raised each time that it is taken. This row is the lock of
-- the claim: who marks a batch shares it, who changes the claimant has it alone.
create table service_id_claims (
    service_id text collate "C" primary key references services,
    claimant text collate "C" references instances on delete set null,
    epoch bigint not null default 0
);
create index service_id_claims_by_claimant on service_id_claims (claimant, service_id);

-- One row a batch, written when it enters and when it ends. No index holds what changes when it
-- ends, and the pages have room, so that PostgreSQL changes it in place.
create table batches (
    seq bigint generated always as identity primary key,
    service_id text collate "C" not null references services,
    batch_id bytea not null check (octet_length(batch_id) = 64),
    created_at bigint not null,
    ended_at bigint,
    dlt_status text collate "C" check (dlt_status in ('INVALID', 'COMMITTED')),
    attempts integer not null default 0,
    submitted_at bigint,
    checked_at bigint,
    last_error text,
    unique (batch_id, service_id),
    unique (service_id, created_at),
    check ((ended_at is null) = (dlt_status is null))
) with (fillfactor = 80);

-- The bytes, written once and read once for each time they are sent.
create table batch_payloads (
    batch_seq bigint primary key references batches on delete cascade,
    serialized_batch bytea not null
);
-- Signatures and hashes do not compress.
alter table batch_payloads alter column serialized_batch set storage external;

create table transactions (
    batch_seq bigint not null references batches on delete cascade,
    position integer not null,
    transaction_id bytea not null check (octet_length(transaction_id) = 64),
    primary key (batch_seq, position)
);

-- Why a batch is invalid: at least one row for each batch that is.
create table transaction_receipts (
    batch_seq bigint not null references batches on delete cascade,
    position integer not null,
    transaction_id bytea,
    error_message text not null,
    error_data bytea not null,
    primary key (batch_seq, position)
);

-- The attempts that did not end with the ledger taking the batch, the latest of each batch.
create table submission_attempts (
    batch_seq bigint not null references batches on delete cascade,
    attempt integer not null,
    submitted_at bigint,
    ended_at bigint not null,
    outcome text not null,
    error text,
    next_try_at bigint,
    primary key (batch_seq, attempt)
);

-- What changes between a batch's beginning and its end, in small rows that are changed in place:
-- one lane a service, holding its oldest open batch, or more where batches of a service overlap.
-- Only what rarely changes is indexed. Nothing refers to batches: that would need an index here.
create table batch_statuses (
    service_id text collate "C" not null references services,
    lane integer not null,
    -- As in service_id_claims: a write that names an older one changes nothing.
    epoch bigint not null default 0,
    -- How many batches this lane has seen to their end.
    ended bigint not null default 0,
    batch_seq bigint,
    batch_id bytea,
    created_at bigint,
    submitted boolean not null default false,
    dlt_status text collate "C",
    -- Proved to be committed while with a submitter: it ends when the submitter is done.
    commit_proven boolean not null default false,
    attempts integer not null default 0,
    submitted_at bigint,
    since bigint,
    checked_at bigint,
    next_try_at bigint,
    last_error text,
    -- Where the batch waits for a person: since when, and why.
    held_at bigint,
    held_reason text,
    busy boolean not null generated always as (batch_seq is not null) stored,
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
) with (fillfactor = 50);
create index batch_statuses_busy on batch_statuses (service_id, lane) where busy;
