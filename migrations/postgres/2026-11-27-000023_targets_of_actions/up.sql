-- The id of a token or a webhook.
alter table operator_actions add column target_id text collate "C";
alter table operator_actions drop constraint operator_actions_target_check,
    add check (target in
        ('batch', 'service', 'all_services', 'instance', 'token', 'webhook', 'database')) not valid;
