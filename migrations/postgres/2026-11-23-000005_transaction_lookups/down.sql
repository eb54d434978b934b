drop table transaction_lookups;
drop index missing_transactions_of_signer;
drop index missing_transactions_left;
alter table missing_transactions drop column signer;
