use std::io;

use grid_batch_core::{ServiceScopeId, Timestamp};

use crate::{
    Record, RequestKind, StateValues,
    common_state::CommonState,
    request::SimRequest,
    response::{SimReply, SimResponse},
};

/// The behaviour of one kind of ledger.
///
/// Its state changes with time only in [`advance`](Self::advance), which is called before and after
/// every request, and every few milliseconds while the ledger is not idle.
pub(crate) trait SimulatedLedger: Send {
    /// The kind of a request.
    fn kind_of(&self, request: &SimRequest) -> RequestKind;

    /// Handles a request. After [`SimReply::Wait`] it is called again later.
    fn respond(
        &mut self,
        request: &SimRequest,
        common: &mut CommonState,
        now: Timestamp,
    ) -> SimReply;

    /// Does all work that is due.
    fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()>;

    /// Whether no batch is waiting or being executed.
    fn is_idle(&self) -> bool;

    /// Adds a service, if the ledger has services.
    fn add_service(&mut self, _service: ServiceScopeId, _record: &Record) {}

    /// Sets whether the services of a node answer.
    fn set_started(&mut self, _started: bool) {}

    /// Takes the state of another node, if the ledger has services that several nodes share.
    fn restore_state(&mut self) {}

    /// The values that batches of the executed family have written.
    fn state_values(&self) -> StateValues {
        StateValues::default()
    }

    /// The maximum number of batches that have waited to be executed at once.
    fn most_waiting(&self) -> usize {
        0
    }

    /// Clears the state that a restart loses.
    fn restart(&mut self, now: Timestamp);

    /// Clears the state that a kill loses. The node does nothing until it starts again.
    fn stop(&mut self, _common: &mut CommonState, now: Timestamp) {
        self.restart(now);
    }

    /// Freezes the node, or unfreezes it.
    fn set_frozen(&mut self, _is_frozen: bool) {}

    /// Continues after a stop.
    fn start_again(&mut self) {}

    /// The response when the record cannot be written.
    fn internal_error(&self) -> SimResponse;

    /// The response to an accepted submission that reports a timeout, if the ledger has one.
    fn timed_out(&self) -> Option<SimResponse>;

    /// The response to a request that was in flight when the validator behind the interface ended.
    fn disconnected(&self) -> SimResponse {
        self.internal_error()
    }

    /// The response to a status request that reports a temporary error.
    fn statuses_error(&self) -> SimResponse;

    /// The body of a response with statuses: valid JSON of another structure.
    fn wrong_typed_statuses(&self) -> &'static str;

    /// The maximum length of a body.
    fn max_body_bytes(&self) -> usize;

    /// Limit on the number of concurrent requests, including waiting ones.
    fn workers(&self) -> usize;

    /// Whether header names are written in title case.
    fn has_title_case_headers(&self) -> bool;
}
