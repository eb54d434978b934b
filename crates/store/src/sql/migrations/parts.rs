//! Optional parts of the schema: the tables of a feature, which a build may lack.
//!
//! Each migration is divided into steps: one for the tables of batches, and one for those of each part. A database
//! records the steps, so a part can be added later.

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

/// The part to which a table belongs. `None`: every build has the table.
pub(in crate::sql) fn part_of_table(table: &str) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.tables.contains(&table))
}

/// The statements of a migration for the tables of one part, or for those that every build has.
pub(super) struct MigrationStep {
    pub(super) script: &'static Script,
    pub(super) part: Option<&'static Part>,
    pub(super) up: String,
    pub(super) down: String,
}

impl MigrationStep {
    /// The steps of a migration, in order.
    pub(super) fn of(script: &'static Script, names: &StoredNames) -> Vec<Self> {
        let [up, down] = [script.up, script.down].map(|text| Statements::of(text, names));
        let parts = [None].into_iter().chain(PARTS.iter().map(Some));
        parts
            .map(|part| Self { script, part, up: up.share_of(part), down: down.share_of(part) })
            .filter(|step| step.part.is_none() || !step.up.is_empty())
            .collect()
    }

    pub(super) fn version(&self) -> String {
        let version = self.script.version();
        self.part.map_or(version.clone(), |part| format!("{version}_{}", part.name))
    }
}

/// A script of a migration, with the table that each statement changes.
struct Statements {
    script: &'static str,
    statements: Vec<(&'static str, Option<&'static str>)>,
}

impl Statements {
    fn of(script: &'static str, names: &StoredNames) -> Self {
        let statements = statements(script).into_iter();
        let statements = statements.map(|text| (text, names.table_of(text))).collect();
        Self { script, statements }
    }

    /// The statements that belong to a part, or to every build.
    fn share_of(&self, part: Option<&'static Part>) -> String {
        let is_quoted = part.is_none_or(|part| part.is_quoted_in(self.script));
        let belongs = |table: Option<&str>| match table {
            Some(table) => part_of_table(table) == part,
            // It is a setting, or a change of SQLite's catalog, which names tables in quotes.
            None => is_quoted,
        };
        let share = self.statements.iter().filter(|(_, table)| belongs(*table));
        share.map(|(text, _)| *text).collect()
    }
}

impl Part {
    fn is_quoted_in(&self, script: &str) -> bool {
        self.tables.iter().any(|table| script.contains(&format!("'{table}'")))
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
