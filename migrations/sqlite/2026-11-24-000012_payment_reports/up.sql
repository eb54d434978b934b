-- The transaction that used the nonce for good, as its receipt showed it.
alter table account_nonces add column mined_hash blob check (length(mined_hash) = 32);
alter table account_nonces add column block_number integer;
alter table account_nonces add column gas_used integer;
alter table account_nonces add column gas_price integer;

-- Those that paid without the event of the pool.
create index account_nonces_without_event on account_nonces (service_id, nonce)
    where pool_withdrawal_id = '';

-- The key of the request that scheduled the withdrawal.
alter table withdrawals add column idempotency_key text;
create index withdrawals_by_idempotency_key on withdrawals (idempotency_key, list_state, seq)
    where idempotency_key is not null;
