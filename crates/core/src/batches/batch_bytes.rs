use std::{any::Any, fmt, ops::Deref, sync::Arc};

/// The exact bytes of a batch. Clones share them.
#[derive(Clone)]
pub struct BatchBytes(Arc<SharedBytes>);

struct SharedBytes {
    bytes: Vec<u8>,
    _guard: Option<Box<dyn Any + Send + Sync>>,
}

impl BatchBytes {
    /// Wraps these bytes. The guard is dropped together with the last clone, so it can be used to count the bytes in
    /// memory.
    pub fn with_guard(bytes: Vec<u8>, guard: impl Any + Send + Sync) -> Self {
        Self(Arc::new(SharedBytes { bytes, _guard: Some(Box::new(guard)) }))
    }
}

impl From<Vec<u8>> for BatchBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(SharedBytes { bytes, _guard: None }))
    }
}

impl Deref for BatchBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl AsRef<[u8]> for BatchBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for BatchBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for BatchBytes {}

impl fmt::Debug for BatchBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchBytes").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guard_is_dropped_with_the_last_clone() {
        let guard = Arc::new(());
        let bytes = BatchBytes::with_guard(vec![1, 2], Arc::clone(&guard));
        let clone = bytes.clone();
        drop(bytes);
        assert_eq!(Arc::strong_count(&guard), 2);
        assert_eq!(clone, BatchBytes::from(vec![1, 2]));
        drop(clone);
        assert_eq!(Arc::strong_count(&guard), 1);
    }
}
