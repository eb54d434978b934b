-- Whether every batch that a service has committed is accounted for, where the ledger applies a batch again that
-- arrives again. Null: that is not known yet.
create table service_histories (
    service_id text collate "C" primary key,
    is_known boolean
);

-- This database has followed the services that have committed batches.
insert into service_histories (service_id, is_known)
select distinct l.service_id, true from lanes l, ledger d
where l.last_committed_seq is not null and d.kind = 'scabbard';

-- The transactions of committed batches that are not stored. A key is 16 bytes of a hash: a client can make ids of
-- transactions that begin with the same bytes.
create table past_transactions (transaction_key bytea primary key);

-- The batches of which a client or an operator has said that the ledger never committed them.
create table declared_new_batches (batch_seq bigint primary key);
