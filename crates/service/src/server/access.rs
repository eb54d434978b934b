//! Keeps what the HTTP interface knows of tokens as it is in the database.

use std::time::Duration;

use grid_batch_api::{AccessControl, AccessMode};
use grid_batch_core::InternalError;
use grid_batch_store::Store;
use grid_batch_support::PeriodicThread;
use log::{info, warn};

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
    pub(super) fn start(config: &Config, store: Store) -> Result<Self, InternalError> {
        let control = AccessControl::new(config.access.options.clone(), config.clock());
        info!(access_mode = AccessInForce::of(config).text; "access to the HTTP interface");
        if config.access.options.mode != AccessMode::Tokens {
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

/// Which clients may submit batches and read, by `access.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessInForce {
    /// For logs and reports.
    pub text: &'static str,
    /// What to do, if clients can use a ledger that would refuse them.
    pub advice: Option<&'static str>,
}

impl AccessInForce {
    /// What these settings mean.
    pub fn of(config: &Config) -> Self {
        let checks_keys = config.ledger.facts.is_some_and(|facts| facts.checks_keys);
        let options = &config.access.options;
        let text = match options.mode {
            AccessMode::Open if checks_keys => {
                "none; the server submits, with its own key, the batches of everyone who reaches it"
            }
            AccessMode::Open => "none; everyone who reaches the server may do everything",
            AccessMode::LedgerKeys if options.keys.is_empty() => {
                "ledger_keys; batches are taken from clients whose key the node of the service accepts"
            }
            AccessMode::LedgerKeys => {
                "ledger_keys; batches are taken from clients whose key the node of the service accepts, or \
                 access.keys lists"
            }
            AccessMode::Tokens => "tokens; each request needs a token",
        };
        let is_open = options.mode == AccessMode::Open && checks_keys;
        let advice = is_open.then_some(
            "leave access.mode empty: then only clients whose key the node accepts can write to it",
        );
        Self { text, advice }
    }
}

struct Tokens {
    control: AccessControl,
    store: Store,
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
