create table service_histories (
    service_id text primary key,
    is_known integer check (is_known in (0, 1))
) strict, without rowid;

insert into service_histories (service_id, is_known)
select distinct l.service_id, 1 from lanes l, ledger d
where l.last_committed_seq is not null and d.kind = 'scabbard';

create table past_transactions (transaction_key blob primary key) strict, without rowid;

create table declared_new_batches (batch_seq integer primary key) strict;
