-- The batches of a service that miss transactions, which are counted at intake and for the health.
create index waiting_batches_incomplete on waiting_batches (service_id) where position is null;
