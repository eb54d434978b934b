-- The release before would ignore the limits of tokens: while there are any, this fails.
update tokens set scopes = '' where may_send <> '' and revoked_at is null;
alter table tokens drop column may_send;
alter table withdrawals drop column speed_up_at;
