use grid_batch_core::{ItemId, ServiceId, Timestamp};

use crate::WithdrawalId;

/// The open withdrawals of a pool at one gas admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWithdrawals {
    /// The service that orders them.
    pub service_id: ServiceId,
    /// The pool.
    pub pool: String,
    /// How many there are.
    pub open: u64,
}

/// Why an open withdrawal stays with its gas admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveObstacle {
    /// It has a nonce with which it was paid, may be paid, or has ended its present generation.
    Signed,
    /// A submitter has it and may be signing now. Later withdrawals stay as well.
    Submitting,
    /// A transaction that is not stored may have been sent for it, because it is in doubt or its database went back.
    InDoubt,
    /// It is held.
    Held,
}

impl MoveObstacle {
    /// Every obstacle.
    pub const ALL: [Self; 4] = [Self::Signed, Self::Submitting, Self::InDoubt, Self::Held];

    /// The obstacle as responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Submitting => "submitting",
            Self::InDoubt => "in_doubt",
            Self::Held => "held",
        }
    }
}

/// An open withdrawal, and its batch before it was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenWithdrawal {
    /// The withdrawal.
    pub id: WithdrawalId,
    /// Its batch.
    pub batch_id: ItemId,
}

/// One step of moving withdrawals, in the order of the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MoveStep {
    /// The withdrawals that were moved, or can be.
    pub moved: Vec<OpenWithdrawal>,
    /// The withdrawals that stay, with the reasons.
    pub kept: Vec<(OpenWithdrawal, MoveObstacle)>,
    /// Where the next step begins. `None`: this was the last one.
    pub next: Option<Timestamp>,
}

impl MoveStep {
    /// Does all steps, one after the other. `step` begins after the given position.
    pub fn all<E>(step: impl Fn(Option<Timestamp>) -> Result<Self, E>) -> Result<Self, E> {
        let mut all = step(None)?;
        while all.next.is_some() {
            let Self { moved, kept, next } = step(all.next)?;
            all.moved.extend(moved);
            all.kept.extend(kept);
            all.next = next;
        }
        Ok(all)
    }
}
