drop table declared_new_batches;
drop table past_transactions;
drop table service_histories;
