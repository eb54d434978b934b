-- The same tables as on PostgreSQL; the comments are there.

create table services (
    service_id text primary key,
    last_created_at integer not null,
    added integer not null
) strict, without rowid;

create table ledger (
    id integer primary key check (id = 1),
    kind text not null,
    identity text not null,
    name text not null,
    recorded_at integer not null,
    highest_block integer
) strict;

create table instances (
    instance_id text primary key,
    name text unique,
    expiry_1 integer not null,
    expiry_2 integer not null,
    ledger_id integer references ledger on delete set null,
    renewals integer not null default 0,
    paused integer not null default 0 check (paused in (0, 1)),
    draining integer not null default 0 check (draining in (0, 1)),
    check (expiry_1 <= expiry_2)
) strict, without rowid;

create table database_state (
    id integer primary key check (id = 1),
    server text,
    timeline integer,
    synchronous integer not null default 0 check (synchronous in (0, 1)),
    registrations integer not null default 0,
    restored_at integer,
    restored_reason text,
    restored_seq integer,
    retention_at integer,
    paused_at integer,
    check ((restored_at is null) = (restored_seq is null)),
    check ((restored_at is null) = (restored_reason is null))
) strict;
insert into database_state (id) values (1);

create table service_id_claims (
    service_id text primary key references services,
    claimant text references instances on delete set null,
    epoch integer not null default 0,
    paused_at integer
) strict, without rowid;
create index service_id_claims_by_claimant on service_id_claims (claimant, service_id);
create index service_id_claims_paused on service_id_claims (service_id) where paused_at is not null;

create table new_services (
    service_id text primary key references services,
    signer blob not null check (length(signer) = 33)
) strict, without rowid;
create index new_services_by_signer on new_services (signer);

-- autoincrement: the seq of a removed batch is never used again.
create table batches (
    seq integer primary key autoincrement,
    service_id text not null,
    batch_id blob not null check (length(batch_id) = 64),
    created_at integer not null,
    ended_at integer,
    dlt_status text check (dlt_status in ('INVALID', 'COMMITTED')),
    attempts integer not null default 0,
    submitted_at integer,
    checked_at integer,
    last_error text,
    label text,
    unique (batch_id, service_id),
    unique (service_id, created_at),
    check ((ended_at is null) = (dlt_status is null))
) strict;
create index batches_by_label on batches (label, seq) where label is not null;

create table client_batches (
    batch_seq integer primary key,
    client text not null check (client <> '')
) strict;
create index client_batches_by_client on client_batches (client, batch_seq);

create table batch_payloads (
    batch_seq integer primary key,
    declared_access blob,
    serialized_batch blob not null
) strict;

create table transactions (
    batch_seq integer not null,
    position integer not null,
    transaction_id blob not null check (length(transaction_id) = 64),
    primary key (batch_seq, position)
) strict, without rowid;
-- Intake looks for other batches with a transaction. The first bytes are enough, and half as long.
create index transactions_by_id on transactions (substr(transaction_id, 1, 7));

create table transaction_receipts (
    batch_seq integer not null references batches on delete cascade,
    position integer not null,
    transaction_id blob,
    error_message text not null,
    error_data blob not null,
    primary key (batch_seq, position)
) strict, without rowid;

create table commits_after_invalid (
    batch_seq integer primary key references batches on delete cascade,
    reported_at integer not null,
    source text not null
) strict;

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
) strict, without rowid;
create index lanes_busy on lanes (service_id, lane) where busy;

create table waiting_holds (
    batch_seq integer primary key references batches on delete cascade,
    held_at integer not null,
    held_reason text not null,
    cause text not null check (cause in ('OPERATOR', 'MISSING_TRANSACTION'))
) strict;

create table waiting_batches (
    batch_seq integer primary key references batches on delete cascade,
    service_id text not null,
    position integer,
    blocker_seq integer,
    depends_on_blocker integer not null default 0 check (depends_on_blocker in (0, 1)),
    check (position is not null or blocker_seq is null),
    check (blocker_seq is not null or not depends_on_blocker)
) strict;

create unique index waiting_batches_by_position on waiting_batches (service_id, position)
    where position is not null;
create unique index waiting_batches_free on waiting_batches (service_id, position)
    where position is not null and blocker_seq is null;
create index waiting_batches_by_blocker on waiting_batches (blocker_seq, position, batch_seq)
    where blocker_seq is not null;
create index waiting_batches_by_service on waiting_batches (service_id, batch_seq);

create table declared_addresses (
    service_id text not null,
    address text not null,
    kind integer not null check (kind between 0 and 3),
    position integer not null,
    batch_seq integer not null,
    primary key (service_id, address, kind, position)
) strict, without rowid;

create table address_lengths (
    service_id text not null references services,
    length integer not null,
    since integer not null,
    primary key (service_id, length)
) strict, without rowid;

create table missing_transactions (
    transaction_id blob not null check (length(transaction_id) = 64),
    batch_seq integer not null references batches on delete cascade,
    service_id text not null,
    since integer not null,
    asked_at integer not null default 0,
    found_at integer,
    overdue integer not null default 0 check (overdue in (0, 1)),
    invalid_seq integer,
    primary key (transaction_id, batch_seq)
) strict, without rowid;

create index missing_transactions_by_batch on missing_transactions (batch_seq);
create index missing_transactions_to_ask on missing_transactions (asked_at) where found_at is null;
create index missing_transactions_in_time on missing_transactions (since)
    where found_at is null and not overdue;

create table changed_blockers (
    batch_seq integer primary key references batches on delete cascade,
    changed_at integer not null
) strict;

create table halts (
    batch_seq integer primary key references batches on delete cascade,
    service_id text not null references services,
    position integer not null,
    since integer not null,
    ends_until integer,
    origin text not null check (origin in ('POLICY', 'COMMAND', 'FOLLOWING')),
    positioned integer not null check (positioned in (0, 1))
) strict;

create index halts_of_commands on halts (service_id) where origin = 'COMMAND';
create index halts_by_service on halts (service_id, position);
create index halts_that_end on halts (service_id, ends_until) where ends_until is not null;

create view batch_statuses as
select b.service_id, b.batch_id,
    case when s.batch_seq is null then b.dlt_status else s.dlt_status end as dlt_status,
    max(b.created_at, coalesce(b.ended_at, 0), coalesce(s.since, 0), coalesce(s.checked_at, 0))
        as updated_at
from batches b left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq;

create table rewards (
    reward_id blob primary key check (length(reward_id) = 16),
    pool text not null,
    amount text not null,
    once_per_member integer not null check (once_per_member in (0, 1)),
    created_at integer not null
) strict, without rowid;

create table withdrawals (
    seq integer primary key autoincrement,
    withdrawal_id blob not null unique check (length(withdrawal_id) = 16),
    service_id text not null references services,
    kind text not null check (kind in ('propose', 'claim', 'give')),
    reward_id blob references rewards,
    pool text not null,
    beneficiary text not null,
    amount text not null,
    generation integer not null default 1 check (generation > 0),
    batch_seq integer not null unique references batches,
    created_at integer not null,
    cancelled_at integer,
    list_state text not null default 'OPEN'
        check (list_state in ('OPEN', 'COMMITTED', 'INVALID')),
    counted_at integer,
    check ((kind = 'propose') = (reward_id is null))
) strict;
create index withdrawals_by_service on withdrawals (service_id, seq);
create index withdrawals_by_service_and_state on withdrawals (service_id, list_state, seq);
create index withdrawals_by_state on withdrawals (list_state, seq);
create index withdrawals_by_pool on withdrawals (pool, list_state, seq);
create index withdrawals_by_beneficiary on withdrawals (beneficiary, list_state, seq);
create index withdrawals_by_reward on withdrawals (reward_id, list_state, seq)
    where reward_id is not null;

create table payment_sums (
    pool text not null,
    started_at integer not null,
    amount text not null,
    primary key (pool, started_at)
) strict, without rowid;

create table last_failures (
    service_id text not null references services,
    pool text not null,
    withdrawal_seq integer not null,
    batch_seq integer not null,
    failed_at integer not null,
    primary key (service_id, pool)
) strict, without rowid;

create table account_nonces (
    service_id text not null references services,
    nonce integer not null check (nonce >= 0),
    withdrawal_seq integer references withdrawals,
    generation integer,
    assigned_at integer not null,
    note text,
    foreign_hash blob check (length(foreign_hash) = 32),
    outcome text check (outcome in ('WITHDRAWN', 'REVERTED', 'CANCELLED', 'USED_ELSEWHERE')),
    pool_withdrawal_id text,
    undecided integer not null default 0 check (undecided in (0, 1)),
    primary key (service_id, nonce),
    check ((withdrawal_seq is null) = (generation is null)),
    check ((coalesce(outcome, '') = 'WITHDRAWN') = (pool_withdrawal_id is not null)),
    check (not undecided or outcome is null)
) strict, without rowid;
create index account_nonces_by_withdrawal on account_nonces (withdrawal_seq, nonce);
create index account_nonces_open on account_nonces (service_id, nonce)
    where coalesce(outcome, '') = '';
create unique index account_nonces_one_payable on account_nonces (withdrawal_seq)
    where outcome is null or outcome = 'WITHDRAWN';

create table signed_transactions (
    service_id text not null,
    nonce integer not null,
    position integer not null,
    hash blob not null unique check (length(hash) = 32),
    bytes blob not null,
    max_fee integer not null,
    tip integer not null,
    is_filler integer not null check (is_filler in (0, 1)),
    signed_at integer not null,
    sent_at integer,
    last_error text,
    adopted integer not null default 0 check (adopted in (0, 1)),
    primary key (service_id, nonce, position),
    foreign key (service_id, nonce) references account_nonces,
    check (tip between 0 and max_fee)
) strict, without rowid;

create table operator_actions (
    id integer primary key autoincrement,
    acted_at integer not null,
    operator text not null,
    source text not null check (source in ('http', 'command_line', 'program')),
    instance text,
    verb text not null,
    target text not null check (target in ('batch', 'service', 'all_services', 'instance')),
    service_id text,
    batch_id blob check (length(batch_id) = 64),
    attempt integer,
    target_instance text,
    reason text,
    state_before text not null,
    state_after text not null
) strict;
create index operator_actions_by_operator on operator_actions (operator, id);
create index operator_actions_by_verb on operator_actions (verb, id);
create index operator_actions_by_service on operator_actions (service_id, id) where service_id is not null;
create index operator_actions_by_batch on operator_actions (batch_id, id) where batch_id is not null;

-- Events. Retention keeps the last group, so its seq is never used again.

create table event_groups (
    seq integer primary key,
    xid integer,
    at integer not null,
    instance text,
    batch_seqs blob not null
) strict;
create index event_groups_by_xid on event_groups (xid) where xid is not null;

create table batch_events (
    batch_seq integer not null,
    group_seq integer not null,
    at integer not null,
    position integer not null,
    attempt integer not null,
    kind integer not null,
    state integer not null,
    detail text,
    primary key (batch_seq, group_seq, position)
) strict, without rowid;

create table event_feed (
    id integer primary key check (id = 1),
    generation integer not null default 0,
    removed_seq integer not null default 0,
    removed_xid integer not null default 0
) strict;
insert into event_feed (id) values (1);

-- autoincrement: the id of a removed webhook is never used again.
create table webhooks (
    id integer primary key autoincrement,
    url text not null,
    secret blob not null,
    services text not null,
    kinds text not null,
    created_at integer not null,
    cursor text not null,
    lease integer not null default 0,
    leased_until integer not null default 0,
    attempts integer not null default 0,
    next_try_at integer not null default 0,
    last_error text,
    disabled_at integer,
    missed_at integer
) strict;

create table failed_deliveries (
    id integer primary key autoincrement,
    webhook_id integer not null references webhooks on delete cascade,
    message_id text not null,
    body text not null,
    attempts integer not null,
    error text not null,
    failed_at integer not null,
    again integer not null default 0 check (again in (0, 1))
) strict;
create index failed_deliveries_of_webhooks on failed_deliveries (webhook_id, id);
create index failed_deliveries_again on failed_deliveries (webhook_id, id) where again;

create table tokens (
    token_id text primary key check (length(token_id) = 16),
    name text not null check (name <> ''),
    secret_hash blob not null check (length(secret_hash) = 32),
    scopes text not null check (scopes <> ''),
    services text not null check (services <> ''),
    created_at integer not null,
    expires_at integer,
    last_used_at integer,
    revoked_at integer
) strict, without rowid;
create unique index tokens_by_name on tokens (name) where revoked_at is null;
