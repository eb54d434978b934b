//! Several instances on one database. An SQLite file allows one at a time; its statements are tested
//! with several too, by removing the lock file.

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
