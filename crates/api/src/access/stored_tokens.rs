use std::sync::Arc;

use grid_batch_core::BatchResult;
use grid_batch_core::tokens::TokenStore;
use log::warn;

use super::AccessControl;

/// Keeps what an [`AccessControl`] knows of tokens as it is in the database.
pub struct StoredTokens {
    control: AccessControl,
    store: Arc<dyn TokenStore>,
    passes: u32,
}

impl StoredTokens {
    /// Uses are recorded once in so many passes.
    const PASSES_BETWEEN_USES: u32 = 60;

    /// The tokens of a store, for an access control.
    pub fn new(control: AccessControl, store: Arc<dyn TokenStore>) -> Self {
        Self { control, store, passes: 0 }
    }

    /// Reads the tokens, and now and then records which were used.
    pub fn refresh(&mut self) -> BatchResult<()> {
        self.read()?;
        self.passes += 1;
        if self.passes.is_multiple_of(Self::PASSES_BETWEEN_USES) {
            self.record_uses();
        }
        Ok(())
    }

    /// Reads the tokens, and returns how many there are. While the database does not answer, those that were read
    /// last are accepted until they expire; nothing can be read or stored with them.
    pub fn read(&self) -> BatchResult<usize> {
        let tokens = self.store.unrevoked_tokens()?;
        let count = tokens.len();
        self.control.set_tokens(tokens);
        Ok(count)
    }

    fn record_uses(&self) {
        let used = self.control.take_used();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.store.note_token_use(&used) {
            warn!(error:%; "the last use of tokens cannot be recorded");
        }
    }
}

impl std::fmt::Debug for StoredTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredTokens").field("passes", &self.passes).finish_non_exhaustive()
    }
}
