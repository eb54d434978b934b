mod again;
mod first;
mod from;
mod payment;
mod sent;
mod spent;
