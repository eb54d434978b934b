drop index withdrawals_by_idempotency_key;
alter table withdrawals drop column idempotency_key;
drop index account_nonces_without_event;
alter table account_nonces drop column gas_price;
alter table account_nonces drop column gas_used;
alter table account_nonces drop column block_number;
alter table account_nonces drop column mined_hash;
