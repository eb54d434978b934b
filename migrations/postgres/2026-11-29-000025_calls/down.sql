-- The release before would reject open calls, although signed ones may still be mined: while there are any, this fails.
update withdrawals set pool = null where call is not null and list_state = 'OPEN';
alter table account_nonces drop column logs;
drop index calls_by_service;
drop index withdrawals_of_pools_by_service;
drop index withdrawals_of_pools_by_state;
drop index calls_by_state;
alter table withdrawals drop column call;
