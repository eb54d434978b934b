/// At least one of the batches is invalid.
pub(in crate::commands) const EX_INVALID: u8 = 1;
/// Not all batches have ended in time.
pub(in crate::commands) const EX_TIMED_OUT: u8 = 3;
