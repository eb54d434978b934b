//! Model of the claim protocol: several instances and the services of one database. The checker
//! visits every state.
//!
//! An instance claims a service, which raises the service's epoch. It marks the next batch, sends
//! it, learns the result, records it, and renews its lease before it expires. It can stop, crash or
//! be late with any step; so can the network and the ledger. `action` has the steps; `claims`,
//! `submissions`, `results` and `ledger` define when each is possible and what it does; `state` is
//! the state; `protocol` is the configuration. The states of a batch are not modelled again: the
//! model calls core's `transition`.
//!
//! # Properties and their reasons
//!
//! | property | reason | if instances pause |
//! |---|---|---|
//! | an epoch has one owner | a claim raises it, in one transaction | the same |
//! | one batch of a service is in progress | the owner marks it in the lane | the same |
//! | no batch is sent again blindly | `transition` requires evidence, and the attempt id fences late results | the same |
//! | no batch is sent again too early | the full expiry is longer than a submission, and absence counts only after the time in which the submission may still arrive | not if the ledger's report is enough for absence |
//! | applied once, in order, with a true record | all of the above | if the ledger applies a batch once and an invalid batch stays invalid, or if absence is observed |
//! | no batch waits forever, except for an operator | a new owner marks recovered batches as in doubt, and looks for evidence | the same |
//!
//! **The full expiry** is longer than a submission if a batch is marked only before the *idle*
//! expiry, and a submission takes less time than the time between the two. So a healthy owner is
//! not taken over while it sends; an owner that is taken over is one that pauses. A single expiry
//! works, too, if batches are marked early enough before it; then a service that is not sending
//! waits longer for its next owner.
//!
//! **An instance that pauses** can send a long time after its service has another owner, and no
//! lock in a database prevents that. There are two kinds of ledgers:
//!
//! - A ledger that *applies once* (Sawtooth) is safe: it does not apply a batch again, so its
//!   report that it does not know a batch is enough evidence. But a batch that was invalid, and
//!   whose invalidity the ledger forgot, may be applied when it arrives late. So pauses are safe
//!   only for batches that stay invalid.
//! - A ledger that *applies again* (Scabbard) must be observed. Absence counts only for the owner
//!   that sent the batch, in the epoch of the submission, if it has received all events since
//!   before the submission, and has waited since the *end* of the submission for a POST that may
//!   still arrive. A new owner can prove that a batch was applied, but never that it was not; then
//!   an operator decides.
//!
//! **The attempt id** fences records with its attempt alone. The epoch is needed for the mark: a
//! batch that is marked by an instance without a claim, which then ends, is never recovered.
//!
//! `broken_rules` leaves out each rule, and prints a shortest path to a violation.
//!
//! # What is checked
//!
//! All orders of all steps of up to three instances, two services and three batches, with a limited
//! number of faults of instances (an expiry, a crash, a stop) and of the ledger (a POST that is
//! lost, late or not answered; an invalid batch; a restart). So every path ends, which is checked,
//! too; and at its end, all batches have ended or wait for an operator.
//!
//! Delays need no steps, because a possible step stays possible. Pauses are not steps either: if
//! instances pause, none of their time limits holds. A restarted instance has a new name, so a
//! crashed instance does not return.
//!
//! Left out are: a busy ledger, which is like a POST that is not sent; the status *valid*;
//! decisions of operators; and a transaction that is committed while its confirmation is lost. An
//! instance has one task per service.

mod action;
mod broken_rules;
mod check;
mod claims;
mod intended_protocol;
mod ledger;
mod properties;
mod protocol;
mod results;
mod state;
mod submissions;
mod symmetry;
