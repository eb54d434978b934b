mod again;
mod filler;
mod first;
mod from;
mod payment;
mod sent;
mod spent;
