use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::{Clock, Timestamp};
use grid_batch_support::lock;
use tokio::{
    select,
    sync::{Notify, Semaphore, watch},
    time::sleep,
};

use crate::{
    Fault, RequestKind, common_state::CommonState, ledger::SimulatedLedger, request::SimRequest,
    request_log::RequestLog, response::SimReply,
};

/// How often the clock is read while something waits for it: a test may advance it.
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The state that the handle and the server share.
pub(crate) struct SimContext {
    state: Mutex<LedgerState>,
    clock: Arc<dyn Clock>,
    frozen: watch::Sender<bool>,
    validator: watch::Sender<Validator>,
    /// The number of restarts. Requests and connections belong to one boot.
    boot: watch::Sender<u64>,
    /// How often late submissions were delivered by command.
    deliveries: watch::Sender<u64>,
    has_work: Notify,
    pub(crate) workers: Semaphore,
    pub(crate) max_body_bytes: usize,
    pub(crate) has_title_case_headers: bool,
}

/// The process behind the interface of the ledger.
#[derive(Debug, Clone, Copy)]
struct Validator {
    /// While it is down: how long the interface waits for it before it answers a request.
    down: Option<Duration>,
    crashes: u64,
}

pub(crate) struct LedgerState {
    pub(crate) ledger: Box<dyn SimulatedLedger>,
    pub(crate) common: CommonState,
    is_stopped: bool,
    pub(crate) requests: RequestLog,
}

/// The connection must be reset.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the simulated ledger resets the connection")]
pub(crate) struct ConnectionReset;

impl SimContext {
    pub(crate) fn new(
        ledger: Box<dyn SimulatedLedger>,
        common: CommonState,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            clock,
            frozen: watch::Sender::new(false),
            validator: watch::Sender::new(Validator { down: None, crashes: 0 }),
            boot: watch::Sender::new(0),
            deliveries: watch::Sender::new(0),
            has_work: Notify::new(),
            workers: Semaphore::new(ledger.workers()),
            max_body_bytes: ledger.max_body_bytes(),
            has_title_case_headers: ledger.has_title_case_headers(),
            state: Mutex::new(LedgerState {
                ledger,
                common,
                is_stopped: false,
                requests: RequestLog::default(),
            }),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The ledger, without doing the work that is due.
    pub(crate) fn state(&self) -> MutexGuard<'_, LedgerState> {
        lock(&self.state)
    }

    /// The ledger, after doing all work that is due.
    pub(crate) fn advanced_state(&self) -> MutexGuard<'_, LedgerState> {
        let mut state = self.state();
        if let Err(error) = state.advance(self.now()) {
            log::error!("the simulated ledger cannot write its record: {error}");
        }
        state
    }

    /// Adds a request to the log, and returns its kind.
    pub(crate) fn log_request(&self, request: &SimRequest) -> RequestKind {
        let mut state = self.state();
        let kind = state.ledger.kind_of(request);
        state.requests.add(kind, request);
        kind
    }

    pub(crate) fn occurs(&self, fault: Fault) -> bool {
        self.state().common.faults.occurs(fault)
    }

    pub(crate) fn delay(&self, kind: Fault) -> Duration {
        self.state().common.faults.delay(kind)
    }

    pub(crate) fn respond(
        &self,
        boot: u64,
        request: &SimRequest,
    ) -> Result<SimReply, ConnectionReset> {
        let now = self.now();
        let mut state = self.state();
        self.check_boot(boot)?;
        if self.validator.borrow().down.is_some() {
            return Ok(SimReply::Wait);
        }
        let reply = state.respond(request, now);
        if !state.ledger.is_idle() {
            self.has_work.notify_one();
        }
        Ok(reply)
    }

    pub(crate) fn set_frozen(&self, frozen: bool) {
        self.advanced_state().ledger.set_frozen(frozen);
        self.frozen.send_replace(frozen);
    }

    pub(crate) fn restart(&self) {
        self.restart_state(&mut self.advanced_state());
    }

    pub(crate) fn restart_if_idle(&self) -> bool {
        let mut state = self.advanced_state();
        let is_idle = state.ledger.is_idle();
        if is_idle {
            self.restart_state(&mut state);
        }
        is_idle
    }

    /// The state is locked, so that no request of the old boot is answered after the restart.
    fn restart_state(&self, state: &mut LedgerState) {
        state.restart(self.now());
        self.boot.send_modify(|boot| *boot += 1);
        state.common.events.resume_sending();
    }

    /// Resets all connections. The ledger behind the interface loses nothing.
    pub(crate) fn restart_interface(&self) {
        let mut state = self.advanced_state();
        self.boot.send_modify(|boot| *boot += 1);
        state.common.events.resume_sending();
    }

    /// Ends the ledger's process: connections are reset, and nothing is done until it starts again.
    pub(crate) fn stop(&self) {
        let now = self.now();
        let mut state = self.advanced_state();
        let LedgerState { ledger, common, is_stopped, .. } = &mut *state;
        ledger.stop(common, now);
        *is_stopped = true;
        self.boot.send_modify(|boot| *boot += 1);
    }

    pub(crate) fn start_again(&self) {
        let mut state = self.state();
        state.ledger.start_again();
        state.is_stopped = false;
    }

    /// Ends the validator. Its interface stays, and answers a request after this time.
    pub(crate) fn crash_validator(&self, interface_timeout: Duration) {
        self.set_validator(Some(interface_timeout));
    }

    /// Starts the validator, after a crash or instead of the one that is running.
    pub(crate) fn start_validator(&self) {
        self.set_validator(None);
    }

    fn set_validator(&self, down: Option<Duration>) {
        let now = self.now();
        let mut state = self.advanced_state();
        state.restart(now);
        self.validator.send_modify(|validator| {
            let was_up = validator.down.is_none();
            *validator = Validator { down, crashes: validator.crashes + u64::from(was_up) };
        });
    }

    /// How often the validator has ended.
    pub(crate) fn crashes(&self) -> u64 {
        self.validator.borrow().crashes
    }

    /// Waits until the validator has ended more often than this, and returns how often.
    pub(crate) async fn wait_for_crash(&self, crashes: u64) -> u64 {
        let mut validator = self.validator.subscribe();
        // An error would mean that the sender is dropped, and it lives as long as `self`.
        let crashed = validator.wait_for(|validator| validator.crashes != crashes).await;
        crashed.map_or(crashes, |validator| validator.crashes)
    }

    /// Waits until the validator runs. Returns `false` if the interface does not wait that long.
    pub(crate) async fn wait_for_validator(&self, boot: u64) -> Result<bool, ConnectionReset> {
        let since = self.now();
        loop {
            let down = self.validator.borrow().down;
            match down {
                None => return Ok(true),
                Some(timeout) if self.now().since(since) >= timeout => return Ok(false),
                Some(_) => self.poll_clock().await,
            }
            self.check_boot(boot)?;
        }
    }

    /// The current boot. Requests of an earlier boot are not answered.
    pub(crate) fn boot(&self) -> u64 {
        *self.boot.borrow()
    }

    /// Waits until the ledger restarts.
    pub(crate) async fn wait_for_restart(&self, boot: u64) -> ConnectionReset {
        // An error would mean that the sender is dropped, and it lives as long as `self`.
        let _ = self.boot.subscribe().wait_for(|current| *current != boot).await;
        ConnectionReset
    }

    /// Waits while the ledger is frozen.
    pub(crate) async fn wait_until_thawed(&self, boot: u64) -> Result<(), ConnectionReset> {
        let mut frozen = self.frozen.subscribe();
        frozen.wait_for(|frozen| !frozen).await.map_err(|_| ConnectionReset)?;
        let mut stopped = self.state().common.stopped.subscribe();
        stopped.wait_for(|stopped| !stopped).await.map_err(|_| ConnectionReset)?;
        self.check_boot(boot)
    }

    /// Waits for a duration of the ledger's clock.
    pub(crate) async fn sleep(&self, boot: u64, duration: Duration) -> Result<(), ConnectionReset> {
        let until = self.now().plus(duration);
        while self.now() < until {
            self.poll_clock().await;
            self.check_boot(boot)?;
        }
        Ok(())
    }

    /// Keeps a submission for this duration, or until late submissions are delivered.
    pub(crate) async fn keep_until_late(
        &self,
        boot: u64,
        duration: Duration,
    ) -> Result<(), ConnectionReset> {
        let mut deliveries = self.deliveries.subscribe();
        select! {
            slept = self.sleep(boot, duration) => slept,
            _ = deliveries.changed() => self.check_boot(boot),
        }
    }

    pub(crate) fn kept_submissions(&self) -> usize {
        self.deliveries.receiver_count()
    }

    pub(crate) fn deliver_late(&self) {
        self.deliveries.send_modify(|deliveries| *deliveries += 1);
    }

    pub(crate) async fn poll_clock(&self) {
        sleep(CLOCK_POLL_INTERVAL).await;
    }

    fn check_boot(&self, boot: u64) -> Result<(), ConnectionReset> {
        if self.boot() == boot { Ok(()) } else { Err(ConnectionReset) }
    }

    /// Does work that becomes due without a request. Sleeps while the ledger is idle.
    pub(crate) async fn run_background_work(&self) {
        loop {
            self.has_work.notified().await;
            while !self.advanced_state().ledger.is_idle() {
                self.poll_clock().await;
            }
        }
    }
}

impl LedgerState {
    /// Does all work that is due. The record is synced before any response shows the work.
    fn advance(&mut self, now: Timestamp) -> io::Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        let result = self.ledger.advance(&mut self.common, now);
        self.common.record.sync()?;
        result
    }

    fn restart(&mut self, now: Timestamp) {
        self.ledger.restart(now);
        self.common.stopped.send_replace(false);
    }

    fn respond(&mut self, request: &SimRequest, now: Timestamp) -> SimReply {
        if self.advance(now).is_err() {
            return self.ledger.internal_error().into();
        }
        let reply = self.ledger.respond(request, &mut self.common, now);
        match self.advance(now) {
            Ok(()) => reply,
            Err(_) => self.ledger.internal_error().into(),
        }
    }
}
