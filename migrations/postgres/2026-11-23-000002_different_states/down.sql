drop index service_id_claims_states_differ;
alter table service_id_claims drop column states_differ_at;
