drop table signed_transactions;
drop table account_nonces;
drop table withdrawals;
drop table rewards;
