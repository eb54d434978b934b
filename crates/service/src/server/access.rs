//! Keeps what the HTTP interface knows of tokens as it is in the database.

use std::{sync::Arc, time::Duration};

use grid_batch_api::AccessControl;
use grid_batch_core::{InternalError, TokenStore};
use grid_batch_support::PeriodicThread;
use log::warn;

use crate::Config;

/// Reads the tokens again and again. Dropping it ends that.
#[derive(Debug)]
pub(super) struct RunningAccess {
    control: AccessControl,
    _thread: Option<PeriodicThread>,
}

impl RunningAccess {
    /// A token that is created or revoked is so on all instances after this time.
    const INTERVAL: Duration = Duration::from_secs(1);

    /// Reads the tokens and starts the thread, if requests need tokens.
    pub(super) fn start(
        config: &Config,
        store: Arc<dyn TokenStore>,
    ) -> Result<Self, InternalError> {
        let control = AccessControl::new(config.access.options.clone(), config.clock());
        if !config.access.options.is_required {
            return Ok(Self { control, _thread: None });
        }
        let mut tokens = Tokens { control: control.clone(), store, passes: 0, is_failing: false };
        if tokens.read() == Some(0) && config.access.options.keys.is_empty() {
            warn!(
                "requests need a token, and there is none; create one with `grid-batch token create`"
            );
        }
        let thread = PeriodicThread::start("access", Self::INTERVAL, move || tokens.refresh())?;
        Ok(Self { control, _thread: Some(thread) })
    }

    pub(super) fn control(&self) -> AccessControl {
        self.control.clone()
    }
}

struct Tokens {
    control: AccessControl,
    store: Arc<dyn TokenStore>,
    passes: u32,
    is_failing: bool,
}

impl Tokens {
    /// Uses are recorded once in so many passes.
    const PASSES_BETWEEN_USES: u32 = 60;

    fn refresh(&mut self) {
        self.read();
        self.passes += 1;
        if self.passes.is_multiple_of(Self::PASSES_BETWEEN_USES) {
            self.record_uses();
        }
    }

    /// Reads the tokens, and returns how many there are. While the database does not answer, those that were read
    /// last are accepted until they expire; nothing can be read or stored with them.
    fn read(&mut self) -> Option<usize> {
        match self.store.unrevoked_tokens() {
            Ok(tokens) => {
                self.is_failing = false;
                let count = tokens.len();
                self.control.set_tokens(tokens);
                Some(count)
            }
            Err(error) => {
                if !self.is_failing {
                    warn!(error:%; "the tokens cannot be read; those that were read before stay valid");
                }
                self.is_failing = true;
                None
            }
        }
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
