use std::{error::Error, fmt};

/// An error with its sources, as one text: `outer: cause: root cause`.
///
/// A source whose text the outer error repeats is left out.
///
/// ```
/// use grid_batch_core::InternalError;
/// use grid_batch_support::ErrorChain;
///
/// let error = InternalError::from_source("cannot listen", std::io::Error::other("port in use"));
/// assert_eq!(ErrorChain(&error).to_string(), "cannot listen: port in use");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ErrorChain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut source = self.0.source();
        while let Some(error) = source {
            let cause = error.to_string();
            if !text.contains(&cause) {
                text = format!("{text}: {cause}");
            }
            source = error.source();
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::InternalError;

    use super::*;

    #[test]
    fn repeated_source_is_left_out() {
        let root = InternalError::new("port in use");
        let outer = InternalError::from_source("cannot listen: port in use", root);
        assert_eq!(ErrorChain(&outer).to_string(), "cannot listen: port in use");
    }
}
