use std::collections::BTreeMap;

use grid_batch_core::ledger::LedgerIdentity;
use serde::Serialize;
use utoipa::ToSchema;

/// What was put in doubt, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct InDoubtReport {
    /// How many batches.
    pub batches: u64,
    /// Of how many services.
    pub services: u64,
}

/// Which ledger it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LedgerIdentityReport {
    /// What kind of ledger.
    pub kind: String,
    /// The id that nodes tell.
    pub id: String,
    /// The name in the settings.
    pub name: String,
}

impl From<&LedgerIdentity> for LedgerIdentityReport {
    fn from(LedgerIdentity { kind, id, name }: &LedgerIdentity) -> Self {
        Self { kind: kind.clone(), id: id.clone(), name: name.clone() }
    }
}

/// What a node tells of its ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BoundNodeReport {
    /// Its URL, without secrets.
    pub url: String,
    /// Its ledger.
    pub ledger: Option<LedgerIdentityReport>,
    /// Why it does not tell.
    pub error: Option<String>,
}

/// The ledger of the database before, and those of the nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct LedgerBinding {
    /// The ledger that the database was bound to.
    pub database: Option<LedgerIdentityReport>,
    /// The nodes, in the order of the settings.
    pub nodes: Vec<BoundNodeReport>,
    /// Whether the database is bound to another ledger now, or can be.
    pub changed: bool,
    /// Why it cannot be.
    pub refused: Option<String>,
}

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RetentionReport {
    /// How long ago the batches ended.
    pub older_than_seconds: u64,
    /// How many batches.
    pub batches: usize,
    /// Of a dry run: their bytes.
    pub bytes: Option<u64>,
    /// Of a dry run: when the first of them ended.
    pub first_ended_at: Option<String>,
    /// Whether there are more: send the same request again.
    pub has_more: bool,
}

/// A pool with open withdrawals at a gas admin that is not its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PoolMove {
    /// The pool.
    pub pool: String,
    /// The service of its gas admin. Null: the pool is not configured.
    pub to: Option<String>,
    /// How many are open.
    pub open: u64,
}

/// What became of the open withdrawals of a gas admin whose pools have another one now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GasAdminMoves {
    /// The service of the former gas admin.
    pub gas_admin: String,
    /// Its pools that have another one now.
    pub pools: Vec<PoolMove>,
    /// Whether the withdrawals were moved; otherwise they can be.
    pub moved: bool,
    /// The withdrawals.
    pub withdrawals: Vec<String>,
    /// How many stay, by reason.
    pub kept: BTreeMap<&'static str, usize>,
    /// Why nothing was moved.
    pub refused: Option<String>,
}
