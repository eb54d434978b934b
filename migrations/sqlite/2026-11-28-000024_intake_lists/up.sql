-- Lists of batches that programs leave here in transactions of their own, for programs that cannot call the store. An
-- instance adds the batches of a list and removes the row in one transaction.
create table intake_lists (
    id integer primary key autoincrement,
    service_id text not null,
    -- In the form in which clients send it.
    list blob not null,
    label text,
    -- Why the batches are not added yet or, if the list was refused, why they never will be.
    error text,
    refused_at integer
) strict;
create index intake_lists_to_add on intake_lists (service_id, id) where refused_at is null;
