-- Since when an operator has it paused.
alter table webhooks add column paused_at integer;
-- The secret before the present one, with which requests are also signed until then.
alter table webhooks add column previous_secret blob;
alter table webhooks add column previous_secret_until integer;
