update service_histories set is_known = null
where is_known and exists (select 1 from past_transactions);

drop table past_transactions;

create table past_transactions (transaction_key blob primary key) strict, without rowid;
