-- Lists of batches that programs leave here in transactions of their own, for programs that cannot call the store. An
-- instance adds the batches of a list and removes the row in one transaction.
create table intake_lists (
    id bigint generated always as identity primary key,
    service_id text collate "C" not null,
    -- In the form in which clients send it.
    list bytea not null,
    label text collate "C",
    -- Why the batches are not added yet or, if the list was refused, why they never will be.
    error text collate "C",
    refused_at bigint
);
create index intake_lists_to_add on intake_lists (service_id, id) where refused_at is null;

-- Leaves a list, and has an instance look for it after the commit. It runs with the rights of its caller.
create function grid_batch_add(service_id text, list bytea, label text default null) returns bigint
language sql set search_path from current as $$
    with added as (
        insert into intake_lists (service_id, list, label) values ($1, $2, $3) returning id
    )
    select added.id from added, pg_notify('grid_batch_lists', 'list added')
$$;
