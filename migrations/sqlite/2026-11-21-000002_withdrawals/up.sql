-- The same tables as for PostgreSQL, where the reasons stand.

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
    check ((kind = 'propose') = (reward_id is null))
) strict;
create index withdrawals_by_service on withdrawals (service_id, seq);
create index withdrawals_by_pool on withdrawals (pool, seq);
create index withdrawals_by_beneficiary on withdrawals (beneficiary, seq);
create index withdrawals_by_reward on withdrawals (reward_id, seq) where reward_id is not null;

create table account_nonces (
    service_id text not null references services,
    nonce integer not null check (nonce >= 0),
    withdrawal_seq integer references withdrawals,
    generation integer,
    taken_at integer not null,
    note text,
    used_by blob check (length(used_by) = 32),
    spent text check (spent in ('WITHDRAWN', 'REVERTED', 'CANCELLED', 'ELSEWHERE')),
    pool_withdrawal_id text,
    primary key (service_id, nonce),
    check ((withdrawal_seq is null) = (generation is null)),
    check ((coalesce(spent, '') = 'WITHDRAWN') = (pool_withdrawal_id is not null))
) strict, without rowid;
create index account_nonces_by_withdrawal on account_nonces (withdrawal_seq, nonce);
create unique index account_nonces_one_that_counts on account_nonces (withdrawal_seq)
    where spent is null or spent = 'WITHDRAWN';

create table signed_transactions (
    service_id text not null,
    nonce integer not null,
    position integer not null,
    hash blob not null unique check (length(hash) = 32),
    bytes blob not null,
    max_fee integer not null,
    tip integer not null,
    cancels integer not null check (cancels in (0, 1)),
    signed_at integer not null,
    sent_at integer,
    last_error text,
    primary key (service_id, nonce, position),
    foreign key (service_id, nonce) references account_nonces,
    check (tip between 0 and max_fee)
) strict, without rowid;
