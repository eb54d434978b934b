//! Parts of the schema that a build can lack: the tables of a feature.
//!
//! Each migration is divided into steps: what it does with the tables of batches, and with those of each part. A database
//! has recorded the steps, so a part can be added to it later.

use super::{
    super::namespace::{Place, tokens},
    Script, StoredNames,
};

/// A feature of the crate, and the tables that only it uses.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sql) struct Part {
    pub(super) name: &'static str,
    is_installed: bool,
    pub(super) tables: &'static [&'static str],
}

pub(super) static PARTS: [Part; 5] = [
    Part {
        name: "action_log",
        is_installed: cfg!(feature = "action-log"),
        tables: &["operator_actions"],
    },
    Part {
        name: "events",
        is_installed: cfg!(feature = "events"),
        tables: &["event_groups", "batch_events", "event_feed"],
    },
    Part { name: "tokens", is_installed: cfg!(feature = "tokens"), tables: &["tokens"] },
    Part {
        name: "webhooks",
        is_installed: cfg!(feature = "webhooks"),
        tables: &["webhooks", "failed_deliveries"],
    },
    Part {
        name: "withdrawals",
        is_installed: cfg!(feature = "withdrawals"),
        tables: &[
            "rewards",
            "withdrawals",
            "payment_sums",
            "last_failures",
            "account_nonces",
            "signed_transactions",
        ],
    },
];

/// The parts that this build has.
pub(in crate::sql) fn installed_parts() -> Vec<&'static Part> {
    PARTS.iter().filter(|part| part.is_installed).collect()
}

/// The part that a table belongs to. `None`: every build has it.
pub(in crate::sql) fn part_of_table(table: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.tables.contains(&table))
}

/// What a migration does with the tables of one part, or with those that every build has.
#[derive(Clone, Copy)]
pub(super) struct MigrationStep {
    pub(super) script: &'static Script,
    pub(super) part: Option<&'static Part>,
}

impl MigrationStep {
    /// The steps of a migration, in order.
    pub(super) fn of(script: &'static Script, names: &StoredNames) -> Vec<Self> {
        let of_all = Self { script, part: None };
        let of_parts = PARTS.iter().map(|part| Self { script, part: Some(part) });
        let is_used = |step: &Self| !step.share_of(script.up, names).is_empty();
        [of_all].into_iter().chain(of_parts.filter(is_used)).collect()
    }

    pub(super) fn version(self) -> String {
        let version = self.script.version();
        self.part.map_or(version.clone(), |part| format!("{version}_{}", part.name))
    }

    /// The statements of a script that belong to this step.
    pub(super) fn share_of(self, script: &str, names: &StoredNames) -> String {
        let is_quoted = self.part.is_none_or(|part| {
            part.tables.iter().any(|table| script.contains(&format!("'{table}'")))
        });
        let belongs = |statement: &&str| match names.table_of(statement) {
            Some(table) => part_of_table(table) == self.part,
            // A setting, or a change of the catalog of SQLite, which names tables in quotes.
            None => is_quoted,
        };
        statements(script).into_iter().filter(belongs).collect()
    }
}

impl StoredNames {
    /// The table that a statement of a migration changes.
    fn table_of<'a>(&self, statement: &'a str) -> Option<&'a str> {
        let mut place = Place::default();
        for (token, _) in tokens(statement) {
            if let Some(name) = token.name {
                match place.previous {
                    "index" => return self.indexes.get(name).copied(),
                    "table" | "update" | "into" | "from" if self.tables.contains(name) => {
                        return Some(name);
                    }
                    _ => {}
                }
            }
            place.after(token);
        }
        None
    }
}

/// The statements of a script, each with the comments before it.
fn statements(script: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (token, _) in tokens(script) {
        end += token.text.len();
        if token.text == ";" {
            statements.push(&script[start..end]);
            start = end;
        }
    }
    statements
}
