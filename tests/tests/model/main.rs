//! Model of the claim protocol: several instances and the services of one database. The checker
//! visits every state.
//!
//! An instance claims a service, which raises the service's epoch. It marks the next batch, sends
//! it, learns the result, records it, and renews its lease before it expires. It can stop, crash or
//! be late with any step; so can the network and the ledger. `action` has the steps; `claims`,
//! `submissions`, `results`, `ledger` and `database` define when each is possible and what it does;
//! `state` is the state; `protocol` is the configuration. The states of a batch are not modelled again: the
//! model calls core's `transition`.
//!
//! # Properties and their reasons
//!
//! | property | reason | if instances pause |
//! |---|---|---|
//! | an epoch has one owner | a claim raises it, in one transaction | the same |
//! | batches that conflict, or of which one depends on the other, are under way one after the other | the owner marks what is in a lane, and a batch gets one after the end of those | the same |
//! | no batch is sent again blindly | `transition` requires evidence, and the attempt id fences late results | the same |
//! | no batch is sent again too early | the full expiry is longer than a submission, and absence counts only after the time in which the submission may still arrive | not if the ledger's report is enough for absence |
//! | applied once, in order, with a true record | all of the above | if the ledger applies a batch once and an invalid batch stays invalid, or if absence is observed |
//! | no batch is sent to another ledger | a claim requires the recorded identity of the ledger | the same |
//! | no batch ends as invalid because a node lags | the next batch goes to a node that has applied the last one, or another node is asked | the same |
//! | no batch waits forever, except for an operator | a new owner marks recovered batches as in doubt, and looks for evidence | the same |
//!
//! **The full expiry** is longer than a submission if a batch is marked only before the *idle*
//! expiry, and a submission takes less time than the time between the two. So a healthy owner is
//! not taken over while it sends; an owner that is taken over is one that pauses. A single expiry
//! works, too, if batches are marked early enough before it; then a service that is not sending
//! waits longer for its next owner.
//!
//! **Facts of the ledger** are what its adapter declares (`LedgerFacts` of core). The rules of the protocol follow from
//! them by core's own methods, as in the server. How the ledger behaves is given apart from that: `declared_facts` checks
//! that the rules hold for a ledger that behaves as declared, for each known ledger and for all facts that core accepts,
//! and that each fact that is declared more strongly than the ledger behaves leads to a violation.
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
//! **Clocks** jump. Each wait and limit of an instance is measured by a clock that only moves
//! forward, so a jump changes nothing. By the time of day, a jump forward ends the wait for a delayed
//! POST, and a jump back makes a submission longer than its lease. Leases expire by the database's
//! clock; a jump of that is like a pause of all instances.
//!
//! **A POST that lingers** arrives after its absence was accepted. A ledger that applies once is safe
//! if a batch that it finds invalid ends only when no earlier attempt can arrive any more.
//!
//! **A database that goes back** to an earlier state of itself forgets attempts and results, while
//! instances may go on running. Then every open batch is in doubt before it is sent again, also those
//! that wait behind the head. All claims end, and epochs rise past the lost ones: otherwise an
//! instance would have the same attempt ids as one that worked in the lost epochs. For a ledger that
//! applies once, a batch whose invalidity was lost must stay invalid; otherwise it may be applied
//! after later ones.
//!
//! `broken_rules` leaves out each rule, and prints a shortest path to a violation.
//!
//! # What is checked
//!
//! All orders of all steps of up to three instances, two services and three batches, with a limited
//! number of faults of instances (an expiry, a crash, a stop) and of the ledger (a POST that is
//! lost, late or not answered; an invalid batch; a restart). With a smaller size: jumps of clocks, an
//! instance with another ledger, a node that lags, and a database that goes back to any earlier state
//! once. So every path ends, which is checked,
//! too; and at its end, all batches have ended or wait for an operator.
//!
//! Which batch is next, and which are sent in a list, core's strategies choose.
//!
//! With lists (`lists`), for one publisher: up to four batches that conflict, two or three in a request. All of them
//! arrive or none, in time or late. A list that was not answered is not sent again before it can no longer arrive:
//! otherwise its first batch, found invalid when the list arrives, could be sent again behind the others.
//!
//! With two lanes (`two_lanes`), for a ledger that applies a batch once: up to four batches of a service, of
//! which some conflict or depend on others. With one lane all batches of a service conflict.
//!
//! Delays need no steps, because a possible step stays possible. Pauses are not steps either: if
//! instances pause, none of their time limits holds. A restarted instance has a new name, so a
//! crashed instance does not return.
//!
//! Left out are: a busy ledger, which is like a POST that is not sent; the status *valid*;
//! decisions of operators; and a transaction that is committed while its confirmation is lost. An
//! instance has one task for each lane of a service. In a pipeline, the ledger loses nothing that it has accepted, and
//! forgets nothing that is invalid: these are the limits of the strategy.

mod action;
mod broken_rules;
mod check;
mod claims;
mod database;
mod declared_facts;
mod facts;
mod intended_protocol;
mod ledger;
mod lists;
mod properties;
mod protocol;
mod results;
mod scheduling;
mod state;
mod submissions;
mod symmetry;
mod two_lanes;
