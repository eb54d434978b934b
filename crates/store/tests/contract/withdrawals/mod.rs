mod cancelling;
mod details;
pub mod fixture;
mod listing;
mod retrying;
mod rewards;
mod scheduling;
