-- What a pool gives its members.
create table rewards (
    reward_id bytea primary key check (octet_length(reward_id) = 16),
    pool text collate "C" not null,
    amount text collate "C" not null,
    once_per_member boolean not null,
    created_at bigint not null
);

-- One row a withdrawal, kept for good, and with it the batch that tries it now: a withdrawal that was
-- forgotten would be paid again when it is asked for again.
create table withdrawals (
    seq bigint generated always as identity primary key,
    -- Who may ask for something once only gives it the same id each time.
    withdrawal_id bytea not null unique check (octet_length(withdrawal_id) = 16),
    service_id text collate "C" not null references services,
    kind text collate "C" not null check (kind in ('propose', 'claim', 'give')),
    reward_id bytea references rewards,
    pool text collate "C" not null,
    beneficiary text collate "C" not null,
    amount text collate "C" not null,
    -- How often it was begun; each time it has another batch.
    generation integer not null default 1 check (generation > 0),
    batch_seq bigint not null unique references batches,
    created_at bigint not null,
    cancelled_at bigint,
    check ((kind = 'propose') = (reward_id is null))
);
create index withdrawals_by_service on withdrawals (service_id, seq);
create index withdrawals_by_pool on withdrawals (pool, seq);
create index withdrawals_by_beneficiary on withdrawals (beneficiary, seq);
create index withdrawals_by_reward on withdrawals (reward_id, seq) where reward_id is not null;

-- Which withdrawal a number of an account was taken for; none, where it was only filled. No withdrawal
-- has a second one while the first may still be spent, or after it was spent well.
create table account_nonces (
    service_id text collate "C" not null references services,
    nonce bigint not null check (nonce >= 0),
    withdrawal_seq bigint references withdrawals,
    generation integer,
    taken_at bigint not null,
    note text collate "C",
    -- The transaction of somebody else that the chain showed with it last.
    used_by bytea check (octet_length(used_by) = 32),
    -- What became of it, for good.
    spent text collate "C" check (spent in ('WITHDRAWN', 'REVERTED', 'CANCELLED', 'ELSEWHERE')),
    pool_withdrawal_id text collate "C",
    primary key (service_id, nonce),
    check ((withdrawal_seq is null) = (generation is null)),
    check ((coalesce(spent, '') = 'WITHDRAWN') = (pool_withdrawal_id is not null))
);
create index account_nonces_by_withdrawal on account_nonces (withdrawal_seq, nonce);
create unique index account_nonces_one_that_counts on account_nonces (withdrawal_seq)
    where spent is null or spent = 'WITHDRAWN';

-- What was signed with each number, in order. Stored before it is sent.
create table signed_transactions (
    service_id text collate "C" not null,
    nonce bigint not null,
    position integer not null,
    hash bytea not null unique check (octet_length(hash) = 32),
    bytes bytea not null,
    max_fee bigint not null,
    tip bigint not null,
    -- It pays nothing, and only uses the number up.
    cancels boolean not null,
    signed_at bigint not null,
    sent_at bigint,
    last_error text,
    primary key (service_id, nonce, position),
    foreign key (service_id, nonce) references account_nonces,
    check (tip between 0 and max_fee)
);
