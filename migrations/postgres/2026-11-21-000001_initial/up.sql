-- Times are microseconds since 1970 (UTC). Ids are stored as bytes. Names are compared bytewise, as on
-- SQLite.

-- One row for each service. Adding and ending a batch lock this row until the commit, so batches are
-- committed in the order of created_at.
create table services (
    service_id text collate "C" primary key,
    last_created_at bigint not null,
    -- The number of batches ever added. Without those that its lanes have ended: the queue's depth.
    added bigint not null
) with (fillfactor = 70);

-- The ledger that the batches are for: one row, written when the first instance has asked its nodes.
create table ledger (
    id integer primary key check (id = 1),
    kind text collate "C" not null,
    -- What the nodes tell, such as the id of the first block. Empty: they tell nothing.
    identity text collate "C" not null,
    -- The name that the operator gave the ledger, or empty.
    name text collate "C" not null,
    recorded_at bigint not null,
    -- The highest block of the chain that has confirmed a withdrawal (evm). A node without it lags.
    highest_block bigint
);

-- One row for each running instance, with the expiries of its lease. Past expiry_1 (the idle expiry)
-- other instances may take its services without a batch with a submitter, past expiry_2 (the full
-- expiry) all. Zero: another instance has expired it, and it cannot be renewed.
create table instances (
    instance_id text collate "C" primary key,
    -- Identifies an instance across restarts.
    name text collate "C" unique,
    expiry_1 bigint not null,
    expiry_2 bigint not null,
    -- Not null: the instance has confirmed that its nodes belong to the ledger. It takes nothing before.
    ledger_id integer references ledger on delete set null,
    -- How often it has renewed. An instance that finds a smaller number than it wrote knows that the
    -- database went back.
    renewals bigint not null default 0,
    -- Whether an operator has paused all services: as paused_at in database_state.
    paused boolean not null default false,
    -- Whether an operator has it take nothing more and give up its services.
    draining boolean not null default false,
    check (expiry_1 <= expiry_2)
);

-- One row: where this database is, and whether it may have lost its latest commits.
create table database_state (
    id integer primary key check (id = 1),
    -- PostgreSQL's system identifier and the oids of the database and of this table; its timeline.
    server text collate "C",
    timeline bigint,
    -- Whether commits waited for a standby when an instance last looked.
    synchronous boolean not null default false,
    -- How often an instance has registered.
    registrations bigint not null default 0,
    -- When and why all open batches were put in doubt, and the last batch at that time.
    restored_at bigint,
    restored_reason text collate "C",
    restored_seq bigint,
    -- When an instance last started to remove ended batches.
    retention_at bigint,
    -- Since when an operator has all services paused.
    paused_at bigint,
    check ((restored_at is null) = (restored_seq is null)),
    check ((restored_at is null) = (restored_reason is null))
);
insert into database_state (id) values (1);

-- The instance that works on a service, and the epoch, which each takeover raises. This row is the
-- lock of the claim: taking a batch shares it, and a takeover locks it exclusively.
create table service_id_claims (
    service_id text collate "C" primary key references services,
    claimant text collate "C" references instances on delete set null,
    epoch bigint not null default 0,
    -- Since when an operator has no new submission of the service started. Taking a round reads this row anyway.
    paused_at bigint
);
create index service_id_claims_by_claimant on service_id_claims (claimant, service_id);
create index service_id_claims_paused on service_id_claims (service_id) where paused_at is not null;

-- The services in which no batch has ended yet, and who signed the first batch of each: how many a signer
-- may have is limited. The row is removed when a batch of the service ends.
create table new_services (
    service_id text collate "C" primary key references services,
    signer bytea not null check (octet_length(signer) = 33)
);
create index new_services_by_signer on new_services (signer);

-- One row for each batch, written when it is added and when it ends. No index has a column that
-- changes at the end, and the pages have free space for a second version of each row, so the end is a
-- heap-only tuple update. service_id, and batch_seq in batch_payloads and transactions, are no foreign keys: each
-- would look up and lock a row for every row that is inserted. Retention removes payloads and transactions.
create table batches (
    seq bigint generated always as identity primary key,
    service_id text collate "C" not null,
    batch_id bytea not null check (octet_length(batch_id) = 64),
    created_at bigint not null,
    ended_at bigint,
    dlt_status text collate "C" check (dlt_status in ('INVALID', 'COMMITTED')),
    attempts integer not null default 0,
    submitted_at bigint,
    checked_at bigint,
    last_error text,
    -- What the client calls it. It is written once.
    label text collate "C",
    unique (batch_id, service_id),
    unique (service_id, created_at),
    check ((ended_at is null) = (dlt_status is null))
) with (fillfactor = 45);
-- A batch without a label has no entry.
create index batches_by_label on batches (label, seq) where label is not null;

-- Who handed in a batch, if the open batches of clients are limited. It is kept as long as the batch may be open.
create table client_batches (
    batch_seq bigint primary key,
    client text collate "C" not null check (client <> '')
);
create index client_batches_by_client on client_batches (client, batch_seq);

-- The bytes of each batch, written once and read for each attempt.
create table batch_payloads (
    batch_seq bigint primary key,
    -- What the transactions declare, in the form of the program. Null where it is not used. It is read
    -- when the batch ends; after the bytes, SQLite would read them, too.
    declared_access bytea,
    serialized_batch bytea not null
);
-- Signatures and hashes do not compress.
alter table batch_payloads alter column serialized_batch set storage external;

create table transactions (
    batch_seq bigint not null,
    position integer not null,
    transaction_id bytea not null check (octet_length(transaction_id) = 64),
    primary key (batch_seq, position)
);
-- Intake looks for other batches with a transaction. The first bytes are enough, and half as long.
create index transactions_by_id on transactions (substr(transaction_id, 1, 7));

-- Why a batch is invalid: at least one row for each invalid batch.
create table transaction_receipts (
    batch_seq bigint not null references batches on delete cascade,
    position integer not null,
    transaction_id bytea,
    error_message text not null,
    error_data bytea not null,
    primary key (batch_seq, position)
);

-- The batches that ended as invalid and were reported as committed later, with the first report.
create table commits_after_invalid (
    batch_seq bigint primary key references batches on delete cascade,
    reported_at bigint not null,
    source text collate "C" not null
);

-- The latest attempts of each batch that the ledger did not accept.
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

-- The progress of the batches that are next or under way, in small rows that are updated in place.
-- In the serial strategy a service has one lane, which holds its oldest open batch. Only columns that
-- rarely change are indexed. There is no foreign key to batches, which would need an index here.
create table lanes (
    service_id text collate "C" not null references services,
    lane integer not null,
    -- The epoch of the claim. A change with another epoch is refused.
    epoch bigint not null default 0,
    -- The number of batches that ended in this lane.
    ended bigint not null default 0,
    -- The last batch that was committed in this lane. A node must have applied it before it gets another one.
    last_committed_seq bigint,
    batch_seq bigint,
    batch_id bytea,
    created_at bigint,
    -- As in waiting_batches; null where the declared access is not used.
    position bigint,
    -- The last earlier open batch that the batch conflicts with: the pipeline strategy sends it all the
    -- same.
    blocker_seq bigint,
    submitted boolean not null default false,
    dlt_status text collate "C",
    -- Proved to be committed while with a submitter. The batch ends when the submitter reports.
    commit_proven boolean not null default false,
    -- The batch was sent again after evidence of absence: an earlier attempt may still arrive.
    earlier_may_arrive boolean not null default false,
    -- The present attempt is invalid, and the batch waits until no earlier one can arrive.
    invalid_reported boolean not null default false,
    attempts integer not null default 0,
    submitted_at bigint,
    -- When the batch entered its state.
    since bigint,
    checked_at bigint,
    next_try_at bigint,
    -- How often in a row the ledger certainly did not accept the batch, and since when. The next delay
    -- follows from it.
    delays integer not null default 0,
    delayed_since bigint,
    -- How often the ledger has refused the batch, without another answer in between.
    refusals integer not null default 0,
    -- How many attempts the ledger certainly did not accept.
    not_accepted integer not null default 0,
    last_error text,
    -- Since when and why the batch waits for an operator.
    held_at bigint,
    held_reason text,
    -- Neither is the batch sent, nor does evidence have it sent again, before an operator says so.
    held_until_decision boolean not null default false,
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
    check (not invalid_reported or (submitted and dlt_status is not null)),
    check ((held_at is null) = (held_reason is null)),
    check (held_at is not null or not held_until_decision),
    check (
        held_at is null or held_until_decision or (submitted and dlt_status is not null)
    ),
    check (batch_seq is not null or (not submitted and dlt_status is null))
) with (fillfactor = 50);
create index lanes_busy on lanes (service_id, lane) where busy;

-- Holds of batches that wait behind another one. A hold moves into the lane together with its batch.
create table waiting_holds (
    batch_seq bigint primary key references batches on delete cascade,
    held_at bigint not null,
    held_reason text not null,
    -- A hold because a transaction is missing ends when that arrives.
    cause text collate "C" not null check (cause in ('OPERATOR', 'MISSING_TRANSACTION'))
);

-- The open batches that wait, of services whose ledger enforces what transactions declare: those in no
-- lane. Other services have no rows here, and their batches wait in the order of created_at.
-- There is no foreign key to services, which would need another index.
create table waiting_batches (
    batch_seq bigint primary key references batches on delete cascade,
    service_id text collate "C" not null,
    -- Its position in the order of its service: created_at or, if it depends on a transaction that arrived
    -- later, a value from when that one arrived. Null: a transaction that it depends on is missing.
    position bigint,
    -- The batch that must end first: an earlier one that it conflicts with, or one with a transaction that
    -- it depends on, also of another service; the batch itself while the ledger is asked for a transaction of
    -- an invalid batch. Null: none that is known.
    blocker_seq bigint,
    -- Whether it depends on the blocker.
    depends_on_blocker boolean not null default false,
    check (position is not null or blocker_seq is null),
    check (blocker_seq is not null or not depends_on_blocker)
) with (fillfactor = 80);
create unique index waiting_batches_by_position on waiting_batches (service_id, position)
    where position is not null;
create unique index waiting_batches_free on waiting_batches (service_id, position)
    where position is not null and blocker_seq is null;
create index waiting_batches_by_blocker on waiting_batches (blocker_seq, position, batch_seq)
    where blocker_seq is not null;
create index waiting_batches_by_service on waiting_batches (service_id, batch_seq);

-- What open batches with a position declare that they read and write, also those in lanes. A batch has a
-- row for each address, and one for each shorter prefix of it whose length is in address_lengths.
create table declared_addresses (
    service_id text collate "C" not null,
    address text collate "C" not null,
    -- 0 writes it, 1 reads it, 2 writes below it, 3 reads below it.
    kind integer not null check (kind between 0 and 3),
    position bigint not null,
    batch_seq bigint not null,
    primary key (service_id, address, kind, position)
);

-- The lengths of the addresses that batches of a service have declared. Batches before `since` may lack the
-- rows of declared_addresses for this length.
create table address_lengths (
    service_id text collate "C" not null references services,
    length integer not null,
    since bigint not null,
    primary key (service_id, length)
);

-- The transactions that open batches depend on and that no open or committed batch had, or only one without
-- a position, when they arrived; or that only an invalid batch has. While a row is not found, its batch has no
-- position, or is its own blocker.
create table missing_transactions (
    transaction_id bytea not null check (octet_length(transaction_id) = 64),
    batch_seq bigint not null references batches on delete cascade,
    service_id text collate "C" not null,
    since bigint not null,
    -- When the ledger was last asked whether it has the transaction; 0: never.
    asked_at bigint not null default 0,
    -- When the ledger was found to have it, or an operator released the batch.
    found_at bigint,
    -- It has been missing for too long, and the batch was held for that.
    overdue boolean not null default false,
    -- An invalid batch that has the transaction. The batch ends as invalid if the ledger does not have it.
    invalid_seq bigint,
    primary key (transaction_id, batch_seq)
);
create index missing_transactions_by_batch on missing_transactions (batch_seq);
create index missing_transactions_to_ask on missing_transactions (asked_at) where found_at is null;
create index missing_transactions_in_time on missing_transactions (since)
    where found_at is null and not overdue;

-- Batches that got a position or ended while batches waited for them that are still to be looked at, of
-- other services or more than one commit looks at. Normally empty.
create table changed_blockers (
    batch_seq bigint primary key references batches on delete cascade,
    changed_at bigint not null
);

-- Invalid batches that stop what is behind them: until an operator decides, or until what follows has ended.
create table halts (
    batch_seq bigint primary key references batches on delete cascade,
    service_id text collate "C" not null references services,
    -- Its position in the order of its service. Its rows in declared_addresses stay as long as this one.
    position bigint not null,
    since bigint not null,
    -- Set when an operator has decided to end what follows: the last position that this is about. The row is
    -- removed when no batch up to there waits. Batches that end for that have such a row, too.
    ends_until bigint,
    -- POLICY: its service halts. COMMAND: a command ended it, and a server is still to apply the policy.
    -- FOLLOWING: it follows another invalid batch, and ended for that.
    origin text collate "C" not null check (origin in ('POLICY', 'COMMAND', 'FOLLOWING')),
    -- False for a service with one lane: position is in the order of created_at there.
    positioned boolean not null
);
create index halts_of_commands on halts (service_id) where origin = 'COMMAND';
create index halts_by_service on halts (service_id, position);
create index halts_that_end on halts (service_id, ends_until) where ends_until is not null;

-- The status of each batch.
create view batch_statuses as
select b.service_id, b.batch_id,
    case when s.batch_seq is null then b.dlt_status else s.dlt_status end as dlt_status,
    greatest(b.created_at, b.ended_at, s.since, s.checked_at) as updated_at
from batches b left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq;

-- What a pool pays to its members.
create table rewards (
    reward_id bytea primary key check (octet_length(reward_id) = 16),
    pool text collate "C" not null,
    amount text collate "C" not null,
    once_per_member boolean not null,
    created_at bigint not null
);

-- One row for each withdrawal. Neither it nor its current batch is ever removed: a withdrawal that was
-- removed would be paid again when it is requested again.
create table withdrawals (
    seq bigint generated always as identity primary key,
    -- Requests for what may be paid only once have the same id.
    withdrawal_id bytea not null unique check (octet_length(withdrawal_id) = 16),
    service_id text collate "C" not null references services,
    kind text collate "C" not null check (kind in ('propose', 'claim', 'give')),
    reward_id bytea references rewards,
    pool text collate "C" not null,
    beneficiary text collate "C" not null,
    amount text collate "C" not null,
    -- How often the withdrawal was started, each time with another batch.
    generation integer not null default 1 check (generation > 0),
    batch_seq bigint not null unique references batches,
    created_at bigint not null,
    cancelled_at bigint,
    -- How its present batch ended, for lists by state; the batch says the same.
    list_state text collate "C" not null default 'OPEN'
        check (list_state in ('OPEN', 'COMMITTED', 'INVALID')),
    -- The step of payment_sums in which the amount counts; null after a failure.
    counted_at bigint,
    check ((kind = 'propose') = (reward_id is null))
);
create index withdrawals_by_service on withdrawals (service_id, seq);
create index withdrawals_by_service_and_state on withdrawals (service_id, list_state, seq);
create index withdrawals_by_state on withdrawals (list_state, seq);
create index withdrawals_by_pool on withdrawals (pool, list_state, seq);
create index withdrawals_by_beneficiary on withdrawals (beneficiary, list_state, seq);
create index withdrawals_by_reward on withdrawals (reward_id, list_state, seq)
    where reward_id is not null;

-- The sum of the amounts that were scheduled from a pool and have not failed, in a step of ten minutes.
-- Amounts are decimal digits: they may have 256 bits.
create table payment_sums (
    pool text collate "C" not null,
    started_at bigint not null,
    amount text collate "C" not null,
    primary key (pool, started_at)
);

-- The withdrawal that failed last, of each pool.
create table last_failures (
    service_id text collate "C" not null references services,
    pool text collate "C" not null,
    withdrawal_seq bigint not null,
    -- The batch that failed, which may have been removed since.
    batch_seq bigint not null,
    failed_at bigint not null,
    primary key (service_id, pool)
);

-- The nonces of each account and the withdrawals that they were assigned to. A nonce with only a filler
-- has no withdrawal, nor has one that the chain used for something that is not stored. A withdrawal
-- gets no second nonce while it was or may be paid with the first.
create table account_nonces (
    service_id text collate "C" not null references services,
    nonce bigint not null check (nonce >= 0),
    withdrawal_seq bigint references withdrawals,
    generation integer,
    assigned_at bigint not null,
    note text collate "C",
    -- The hash of the last transaction with this nonce that the chain showed and that was not signed
    -- here.
    foreign_hash bytea check (octet_length(foreign_hash) = 32),
    -- Final.
    outcome text collate "C"
        check (outcome in ('WITHDRAWN', 'REVERTED', 'CANCELLED', 'USED_ELSEWHERE')),
    pool_withdrawal_id text collate "C",
    -- The chain has used it, and it cannot be decided for what: nothing is signed for the account.
    undecided boolean not null default false,
    primary key (service_id, nonce),
    check ((withdrawal_seq is null) = (generation is null)),
    check ((coalesce(outcome, '') = 'WITHDRAWN') = (pool_withdrawal_id is not null)),
    check (not undecided or outcome is null)
);
create index account_nonces_by_withdrawal on account_nonces (withdrawal_seq, nonce);
-- The condition is written so that only statements about open nonces of an account use the index.
create index account_nonces_open on account_nonces (service_id, nonce)
    where coalesce(outcome, '') = '';
create unique index account_nonces_one_payable on account_nonces (withdrawal_seq)
    where outcome is null or outcome = 'WITHDRAWN';

-- The transactions that were signed with each nonce, in order. Stored before they are sent.
create table signed_transactions (
    service_id text collate "C" not null,
    nonce bigint not null,
    position integer not null,
    hash bytea not null unique check (octet_length(hash) = 32),
    bytes bytea not null,
    max_fee bigint not null,
    tip bigint not null,
    -- Pays nothing, and only uses the nonce.
    is_filler boolean not null,
    signed_at bigint not null,
    sent_at bigint,
    last_error text,
    -- Was found on the chain, because it was not stored when it was signed.
    adopted boolean not null default false,
    primary key (service_id, nonce, position),
    foreign key (service_id, nonce) references account_nonces,
    check (tip between 0 and max_fee)
);

-- What operators did: each row is written in the transaction of what it tells of. There are no references:
-- the log outlasts batches and instances.
create table operator_actions (
    id bigint generated always as identity primary key,
    acted_at bigint not null,
    operator text collate "C" not null,
    -- Where it was asked for, and the instance that was asked.
    source text collate "C" not null check (source in ('http', 'command_line', 'program')),
    instance text collate "C",
    verb text collate "C" not null,
    -- What it was about: a batch of a service, a service, all services, or an instance.
    target text collate "C" not null check (target in ('batch', 'service', 'all_services', 'instance')),
    service_id text collate "C",
    batch_id bytea check (octet_length(batch_id) = 64),
    attempt bigint,
    target_instance text collate "C",
    reason text collate "C",
    -- In words.
    state_before text collate "C" not null,
    state_after text collate "C" not null
);
create index operator_actions_by_operator on operator_actions (operator, id);
create index operator_actions_by_verb on operator_actions (verb, id);
create index operator_actions_by_service on operator_actions (service_id, id) where service_id is not null;
create index operator_actions_by_batch on operator_actions (batch_id, id) where batch_id is not null;

-- Events: what happened to batches, written in the transaction of the change.

-- One row for each commit that changed batches, or for 1,000 events of it. A reader of the feed reads these
-- rows, and the events of a row by their batches, so that events need no other index.
create table event_groups (
    -- Allocated while the commit holds its locks, so that of two changes of a service, the later one has
    -- the greater number. It says nothing about which of two commits was visible first.
    seq bigint generated always as identity primary key,
    -- The transaction, which tells readers what they have seen. Null: visible to all.
    xid bigint,
    at bigint not null,
    -- The instance that wrote it, unless a command did.
    instance text collate "C",
    -- The batches of the events, in order, in the form of the program.
    batch_seqs bytea not null
);
create index event_groups_by_xid on event_groups (xid) where xid is not null;

-- The events of each batch. There is no foreign key, which would look up a row for every row that is
-- inserted. Retention removes them with their batches.
create table batch_events (
    batch_seq bigint not null,
    group_seq bigint not null,
    -- Its group may be removed before.
    at bigint not null,
    position integer not null,
    attempt integer not null,
    -- The index in EventKind::ALL and in BatchState::ALL, the state after the event.
    kind integer not null,
    state integer not null,
    detail text collate "C",
    primary key (batch_seq, group_seq, position)
);

-- One row: which events readers can still read.
create table event_feed (
    id integer primary key check (id = 1),
    -- When the database went back or moved last. What readers had read before says nothing about it.
    generation bigint not null default 0,
    -- Up to where event_groups were removed.
    removed_seq bigint not null default 0,
    removed_xid bigint not null default 0
);
insert into event_feed (id) values (1);

-- Webhooks: URLs to which events are delivered. At most 100.
create table webhooks (
    id bigint generated always as identity primary key,
    url text collate "C" not null,
    -- What its requests are signed with.
    secret bytea not null,
    -- Which services and kinds of events it gets, one a line; empty: all.
    services text collate "C" not null,
    kinds text collate "C" not null,
    created_at bigint not null,
    -- The position in the feed up to which events were delivered.
    cursor text collate "C" not null,
    -- Raised each time an instance takes the webhook, until when it has it.
    lease bigint not null default 0,
    leased_until bigint not null default 0,
    -- How often the next event was sent in vain, and until when it waits.
    attempts integer not null default 0,
    next_try_at bigint not null default 0,
    last_error text collate "C",
    -- Since when nothing is sent, because the receiver answered that it is gone.
    disabled_at bigint,
    -- When events were last removed before they were delivered.
    missed_at bigint
);

-- The messages that were sent too often in vain.
create table failed_deliveries (
    id bigint generated always as identity primary key,
    webhook_id bigint not null references webhooks on delete cascade,
    message_id text collate "C" not null,
    body text collate "C" not null,
    attempts integer not null,
    error text collate "C" not null,
    failed_at bigint not null,
    -- An operator has it sent once more.
    again boolean not null default false
);
create index failed_deliveries_of_webhooks on failed_deliveries (webhook_id, id);
create index failed_deliveries_again on failed_deliveries (webhook_id, id) where again;

-- One row for each access token of a client.
create table tokens (
    -- The part of the token by which it is found. The rest of it is secret, and only its SHA-256 is here.
    token_id text collate "C" primary key check (length(token_id) = 16),
    name text collate "C" not null check (name <> ''),
    secret_hash bytea not null check (length(secret_hash) = 32),
    -- Scopes, and patterns of services, separated by spaces.
    scopes text collate "C" not null check (scopes <> ''),
    services text collate "C" not null check (services <> ''),
    created_at bigint not null,
    expires_at bigint,
    -- Written every few minutes.
    last_used_at bigint,
    revoked_at bigint
);
create unique index tokens_by_name on tokens (name) where revoked_at is null;
