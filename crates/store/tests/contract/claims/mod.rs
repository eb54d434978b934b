//! Several instances on one database. An SQLite file allows only one at a time, but its statements are also tested with
//! several by removing the lock file.

mod fixture;

mod concurrency;
mod even_out;
mod failures;
mod instances;
mod known_bugs;
mod ledger;
mod lock_races;
mod locking;
mod polling;
mod releasing;
mod rounds;
mod taking;
