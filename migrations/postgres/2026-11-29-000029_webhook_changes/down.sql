-- The release before knows no pause, but sends nothing to a webhook whose receiver is gone.
update webhooks set disabled_at = paused_at where paused_at is not null and disabled_at is null;
alter table webhooks drop column previous_secret_until;
alter table webhooks drop column previous_secret;
alter table webhooks drop column paused_at;
