//! Several instances on one database. On SQLite there is only one at a time; what the statements say
//! of others is tested there too, past the lock that keeps them away.

mod fixture;

mod following;
mod instances;
mod known_bugs;
mod locking;
mod marking;
mod paths;
mod releasing;
mod sharing;
mod taking;
mod together;
