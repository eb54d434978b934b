//! What every database must do, tested on both.

mod fixture;

mod adding;
mod concurrency;
mod ending;
mod following;
mod listing;
mod opening;
mod order;
mod recording;
mod recovery;
mod removing;
mod rounds;
mod story;
