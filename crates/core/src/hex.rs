use std::fmt;

/// Bytes, shown as lower-case hex digits.
///
/// ```
/// use grid_batch_core::Hex;
///
/// assert_eq!(format!("0x{}", Hex(&[0, 0x5a, 0xff])), "0x005aff");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
