-- Since when an operator has it paused.
alter table webhooks add column paused_at bigint;
-- The secret before the present one, with which requests are also signed until then.
alter table webhooks add column previous_secret bytea;
alter table webhooks add column previous_secret_until bigint;
