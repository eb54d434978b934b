drop table past_transactions;

create table past_transactions (transaction_key bigint primary key);
