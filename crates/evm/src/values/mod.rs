//! Values as clients and settings write them.

mod address;
mod amount;
mod gas_price;

pub(crate) use address::parse_beneficiary;
pub use address::{AddressError, parse_address};
pub use amount::AmountError;
pub use amount::parse_amount;
pub use gas_price::{GasPrice, GasPriceError};
