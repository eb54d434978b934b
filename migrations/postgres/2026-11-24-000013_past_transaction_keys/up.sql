-- A key is 16 bytes of a hash: a client can make ids of transactions that begin with the same bytes. What is kept
-- in the old table cannot be found by such a key.
update service_histories set is_known = null
where is_known and exists (select 1 from past_transactions);

drop table past_transactions;

create table past_transactions (transaction_key bytea primary key);
