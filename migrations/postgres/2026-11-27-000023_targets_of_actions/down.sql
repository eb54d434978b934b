delete from operator_actions where target in ('token', 'webhook', 'database');
alter table operator_actions drop column target_id,
    drop constraint operator_actions_target_check,
    add check (target in ('batch', 'service', 'all_services', 'instance')) not valid;
