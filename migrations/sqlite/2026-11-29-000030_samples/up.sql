-- What all instances did in ten seconds, and what was open then. Rows are kept for a day.
create table samples (
    started_at integer primary key,
    attempts integer not null,
    committed integer not null,
    invalid integer not null,
    open integer not null,
    -- The age of the oldest open batch, in microseconds.
    oldest integer not null
) strict;
