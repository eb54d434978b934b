mod assign_nonce;
mod close_nonce;
mod filler;
mod mark_sent;
mod payment;
mod replace;
mod settle_nonce;
mod transactions_from;
