-- What all instances did in ten seconds, and what was open then. Rows are kept for a day.
create table samples (
    started_at bigint primary key,
    attempts bigint not null,
    committed bigint not null,
    invalid bigint not null,
    open bigint not null,
    -- The age of the oldest open batch, in microseconds.
    oldest bigint not null
);
