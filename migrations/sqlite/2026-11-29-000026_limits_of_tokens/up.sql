-- What the token may send beside withdrawals, separated by spaces. Empty: what the accounts may.
alter table tokens add column may_send text not null default '';

-- When it was last requested that the withdrawal's fees be raised.
alter table withdrawals add column speed_up_at integer;
