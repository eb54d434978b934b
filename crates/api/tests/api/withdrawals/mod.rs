//! Withdrawals and rewards, with the rules of a chain that has two gas admins.

mod chain;
mod doors;
mod faults;
mod following;
mod keys;
mod listing;
mod refusals;
mod rewards;
mod rubbish;
mod scheduling;
mod steps;
