use std::fmt;

use crate::{BatchResult, HeaderId, Hex, ServiceId, Ticket, Timestamp, WithdrawalId};

/// A withdrawal as it stands with the account that pays its gas: what is to be paid, and what was
/// signed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The withdrawal.
    pub withdrawal_id: WithdrawalId,
    /// How often it was begun: more than once where a person had it tried anew.
    pub generation: u32,
    /// The pool that pays.
    pub pool: String,
    /// Whom it pays.
    pub beneficiary: String,
    /// How much.
    pub amount: String,
    /// A person wants it undone, if that can still be.
    pub cancelled: bool,
    /// The nonce that it has. One that came to nothing is its nonce no more when the withdrawal is
    /// tried anew.
    pub open: Option<OpenNonce>,
}

/// The nonce that a withdrawal has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenNonce {
    /// The nonce.
    pub nonce: u64,
    /// The generation that it was given to.
    pub generation: u32,
    /// When.
    pub taken_at: Timestamp,
    /// What was seen of it last, in words.
    pub note: Option<String>,
    /// The hash of a transaction that was not signed here, and that the chain showed with it last.
    pub used_by: Option<[u8; 32]>,
    /// What became of it, where that is known for good.
    pub spent: Option<Spent>,
    /// What was signed with it, the oldest first.
    pub transactions: Vec<SignedTransaction>,
}

/// A transaction that was just signed, to be stored before it is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSigned {
    /// Its nonce.
    pub nonce: u64,
    /// Its hash, by which the chain knows it.
    pub hash: [u8; 32],
    /// The bytes, to be sent exactly as they are.
    pub bytes: Vec<u8>,
    /// The most that it pays for a unit of gas, in wei.
    pub max_fee: u128,
    /// What of that is for whoever mines it.
    pub tip: u128,
    /// It pays nothing, and only uses the nonce up.
    pub cancels: bool,
}

/// A transaction that was signed and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTransaction {
    /// The transaction.
    pub signed: NewSigned,
    /// When it was signed.
    pub signed_at: Timestamp,
    /// When it was last sent, if it ever was.
    pub sent_at: Option<Timestamp>,
    /// What the node said against it last.
    pub last_error: Option<String>,
}

/// What became of a nonce for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spent {
    /// The withdrawal was made, and the pool gave it this id.
    Withdrawn {
        /// The pool's id, in decimal digits.
        withdrawal_id: String,
    },
    /// The pool refused the withdrawal when it was mined.
    Reverted,
    /// The nonce was used up on purpose.
    Cancelled,
    /// Something used it that was not signed here.
    Elsewhere,
}

/// Whose turn it is to sign: nothing is signed for a batch that is not with this submitter any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: HeaderId,
    /// Which hand-over of it this is.
    pub ticket: Ticket,
}

/// Signs with a nonce.
pub type Sign<'a> = dyn FnMut(u64) -> BatchResult<NewSigned> + 'a;

/// Keeps what is signed: a nonce and bytes, before they are sent, so that no withdrawal ever has two
/// nonces of which both could be spent.
///
/// Its methods block.
pub trait SigningStore: Send + Sync {
    /// How the withdrawal of a batch stands; `None`: the batch is of no withdrawal.
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>>;

    /// Takes the service's next nonce, `at_least` this one, has it signed with, and stores both in
    /// one commit. `None`: it is not this submitter's turn any more, or the withdrawal has an open
    /// or a successful nonce already; nothing was kept.
    fn sign_first(
        &self,
        turn: &Turn,
        at_least: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// Stores another transaction with the open nonce of the withdrawal. `None` as above, or where
    /// the nonce is not its open one.
    fn sign_again(&self, turn: &Turn, signed: NewSigned) -> BatchResult<Option<SignedTransaction>>;

    /// Stores a transaction that only uses up a nonce before the withdrawal's own: one with which no
    /// payment may be made any more, or that was never taken. `None` as for the first, or where that
    /// is no such nonce.
    fn sign_filler(
        &self,
        turn: &Turn,
        nonce: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>>;

    /// The nonce after the highest that was signed with; `None`: there is none.
    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>>;

    /// What to send from this nonce on, in order of nonces: of each what uses it up, where anything
    /// does, and else its best paid payment. Those of withdrawals that were made are among them, in
    /// case the chain has forgotten them; payments of those that came to nothing are not.
    fn signed_from(&self, service_id: &ServiceId, nonce: u64) -> BatchResult<Vec<NewSigned>>;

    /// Notes that a transaction was sent, and what the node said against it.
    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()>;

    /// Notes what was seen of an open nonce.
    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()>;

    /// Notes which transaction, not signed here, the chain shows with a nonce that is not spent. It
    /// may yet vanish: the last one that was seen counts.
    fn note_use(&self, service_id: &ServiceId, nonce: u64, hash: &[u8; 32]) -> BatchResult<()>;

    /// Writes down for good what became of a nonce. Where something else was written before, nothing
    /// changes, and that is an error.
    fn spend(&self, service_id: &ServiceId, nonce: u64, spent: &Spent) -> BatchResult<()>;
}

impl fmt::Debug for NewSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSigned")
            .field("nonce", &self.nonce)
            .field("hash", &format_args!("0x{}", Hex(&self.hash)))
            .field("bytes", &self.bytes.len())
            .field("max_fee", &self.max_fee)
            .field("tip", &self.tip)
            .field("cancels", &self.cancels)
            .finish()
    }
}
