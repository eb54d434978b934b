drop table past_transactions;

create table past_transactions (transaction_key integer primary key) strict;
