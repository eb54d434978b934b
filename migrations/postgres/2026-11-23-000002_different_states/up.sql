-- Since when the nodes of the ledger have different states of the service; set by the instance that claims it.
-- While it is set, so is paused_at; an operator has paused the service only if the two are different.
alter table service_id_claims add column states_differ_at bigint;
create index service_id_claims_states_differ on service_id_claims (service_id)
    where states_differ_at is not null;
