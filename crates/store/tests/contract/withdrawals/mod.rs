mod cancelling;
pub mod fixture;
mod listing;
mod retrying;
mod rewards;
mod scheduling;
mod story;
