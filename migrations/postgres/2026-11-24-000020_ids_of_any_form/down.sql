-- Ids have 64 bytes. The rows that exist are not read.
alter table batches drop constraint batches_batch_id_check,
    add check (octet_length(batch_id) = 64) not valid;
alter table transactions drop constraint transactions_transaction_id_check,
    add check (octet_length(transaction_id) = 64) not valid;
alter table missing_transactions drop constraint missing_transactions_transaction_id_check,
    add check (octet_length(transaction_id) = 64) not valid;
alter table transaction_lookups drop constraint transaction_lookups_transaction_id_check,
    add check (octet_length(transaction_id) = 64) not valid;
alter table operator_actions drop constraint operator_actions_batch_id_check,
    add check (octet_length(batch_id) = 64) not valid;
