use thiserror::Error;

/// Why an interface cannot be built: its options are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApiBuildError {
    /// An option is zero.
    #[error("the API option {option} is 0; it must be greater")]
    Zero {
        /// The name of the option.
        option: &'static str,
    },
    /// The memory limit is less than the longest body that is allowed.
    #[error(
        "the API option memory_limit is {memory_limit} bytes; it must be at least body_limit, \
         which is {body_limit}"
    )]
    MemoryLimitTooSmall {
        /// The limit of all bodies together.
        memory_limit: usize,
        /// The limit of one body.
        body_limit: usize,
    },
}
