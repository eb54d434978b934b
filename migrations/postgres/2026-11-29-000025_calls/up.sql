-- Any other transaction of an account, as JSON; null for a withdrawal. The pool is then the gate of the call, the
-- beneficiary the address that is called, empty if a contract is created, and the amount the value in wei.
alter table withdrawals add column call text collate "C";
create index calls_by_state on withdrawals (list_state, seq) where call is not null;
create index withdrawals_of_pools_by_state on withdrawals (list_state, seq) where call is null;
create index withdrawals_of_pools_by_service on withdrawals (service_id, list_state, seq) where call is null;
create index calls_by_service on withdrawals (service_id, list_state, seq) where call is not null;

-- The events that the transaction of a call emitted, as JSON.
alter table account_nonces add column logs text collate "C";
