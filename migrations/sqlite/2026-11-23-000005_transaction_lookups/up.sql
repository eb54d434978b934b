-- Who signed the batch that misses the transaction; empty: not known.
alter table missing_transactions add column signer blob not null default x'';

create index missing_transactions_left on missing_transactions (transaction_id, batch_seq)
    where found_at is null;
create index missing_transactions_of_signer on missing_transactions (signer, transaction_id)
    where found_at is null;

-- When the ledger is asked for a transaction that batches of a signer miss.
create table transaction_lookups (
    service_id text not null,
    signer blob not null,
    transaction_id blob not null check (length(transaction_id) = 64),
    since integer not null,
    lookups integer not null default 0,
    next_lookup_at integer not null default 0,
    primary key (service_id, signer, transaction_id)
) strict, without rowid;

create index transaction_lookups_in_turn on transaction_lookups (signer, next_lookup_at);
create index transaction_lookups_not_begun on transaction_lookups (since) where lookups = 0;

insert into transaction_lookups (service_id, signer, transaction_id, since)
select m.service_id, m.signer, m.transaction_id, min(m.since) from missing_transactions m
where m.found_at is null
group by m.service_id, m.signer, m.transaction_id;
