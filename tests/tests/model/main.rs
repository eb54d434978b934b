//! The claims of several instances on the services of one database, as a model of which every
//! state is looked at.
//!
//! An instance takes a service, which raises the service's epoch; marks the next batch; sends it;
//! learns what became of it; records that; and renews its claims before they expire. It can stop,
//! crash, or be late with any of this; and so can the network, and the ledger. `action` names the
//! steps; `claims`, `submissions`, `answers` and `ledger` say when each can be and what it does;
//! `state` is what there is; `protocol` is what can be chosen. How a batch moves is not modelled:
//! that is core's `transition` itself.
//!
//! # What holds, and what it rests on
//!
//! | it holds that | because | and if instances pause |
//! |---|---|---|
//! | an epoch has one owner | the taking raises it, in one transaction | the same |
//! | one batch of a service is under way | it is marked in its lane, by the owner | the same |
//! | nothing is sent again blindly | `transition` asks for evidence, and a attempt id keeps late news out | the same |
//! | nothing is sent again too early | the second expiry outlasts a submission, and absence is believed only when nothing of the submission is on its way | not where the ledger's word is enough for absence |
//! | applied once, in order, recorded truly | all of the above | the ledger applies a batch once and refuses it for good; or absence is watched |
//! | nothing waits for ever but for a person | a new owner puts what it finds in doubt, and asks | the same |
//!
//! **The second expiry** outlasts a submission if a batch is marked only before the *first* expiry,
//! and a whole submission takes less time than lies between the two. So a healthy owner is not
//! overtaken while it sends: one that is overtaken is no better than one that pauses. A single expiry
//! does as well, if a batch is marked early enough before it; then a service that is not sending
//! waits longer for its next owner.
//!
//! **An instance that pauses** can send when its service has long had another owner, and no lock
//! in a database prevents that. Two ledgers:
//!
//! - One that *applies once* (Sawtooth) takes no harm: what was applied is not applied again. Its
//!   word that it does not know a batch is then evidence enough. Yet a batch that it refused, and
//!   whose refusal it forgot, may be applied when it comes late: a pause is harmless only for
//!   batches that are refused whenever they come.
//! - One that *applies again* (Scabbard) must be watched: absence counts only for the owner who sent
//!   the batch, in the epoch in which it did, if it has heard all that was applied since before the
//!   sending, and has waited since the *end* of its submission for what may still arrive. A new
//!   owner can prove that a batch was applied, and never that it was not: then a person decides.
//!
//! **The attempt id** is fence enough with its attempt alone, for what is recorded. The epoch is needed
//! where a batch is marked: what is marked by one who does not own the service, and then ends, is
//! found by nobody.
//!
//! Each rule is left out in `breaks`, which prints the shortest way to the harm.
//!
//! # What is looked at
//!
//! All orders of all steps, among up to three instances, two services and three batches, in which a
//! given number of things go wrong: with instances (an expiry, a crash, a stop) and with the ledger
//! (a POST that is lost, comes late, or is not answered; a refusal; a restart). So every path comes to
//! an end, which is checked too; and where it ends, all batches have ended, or wait for a person.
//!
//! Delays need no steps: a step that can be taken can always be taken later. A pause is no step
//! either: where instances pause, no time limit of theirs holds at any time. Restarted instances
//! have new names, so that an instance that crashes is not seen again.
//!
//! Left out: a ledger that is busy, which is like a POST that never left; the status *valid*; what a
//! person decides; and a transaction that is committed while its answer is lost. For each service,
//! an instance has one thing in hand.

mod action;
mod answers;
mod breaks;
mod check;
mod claims;
mod holds;
mod ledger;
mod likeness;
mod properties;
mod protocol;
mod state;
mod submissions;
