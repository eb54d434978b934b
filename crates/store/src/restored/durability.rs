use crate::sql::{Statement, Store, StoreError, result_row};

impl Store {
    /// Warnings about the settings of the database, one for each setting that may lose commits.
    pub fn durability_warnings(&self) -> Result<Vec<String>, StoreError> {
        let Some(query) = self.dialect().durability_query() else { return Ok(Vec::new()) };
        let rows: Vec<Durability> = self.pools.read()?.load(&Statement::new(query))?;
        Ok(rows.first().map(Durability::warnings).unwrap_or_default())
    }
}

result_row! {
    /// The settings that decide whether a commit can be lost.
    #[derive(Debug, Clone)]
    struct Durability {
        synchronous_commit: String,
        fsync: String,
        full_page_writes: String,
        synchronous_standby_names: String,
        standbys: i64,
    }
}

impl Durability {
    fn warnings(&self) -> Vec<String> {
        let has_synchronous_standbys = !self.synchronous_standby_names.is_empty();
        let mut warnings = Vec::new();
        if self.synchronous_commit == "off" {
            warnings.push(
                "synchronous_commit is off: a crash of PostgreSQL loses its last commits, and a batch \
                 may be sent again; set it to on for this role and database"
                    .to_owned(),
            );
        }
        if self.fsync == "off" {
            warnings.push(
                "fsync is off: a crash of the machine can lose or damage the database; set it to on"
                    .to_owned(),
            );
        }
        if self.full_page_writes == "off" {
            warnings.push(
                "full_page_writes is off: a crash of the machine can damage the database; set it to on"
                    .to_owned(),
            );
        }
        if has_synchronous_standbys && self.synchronous_commit == "local" {
            warnings.push(
                "synchronous_commit is local: commits do not wait for the standbys in \
                 synchronous_standby_names, and a promoted standby may not have the last ones; set it \
                 to on"
                    .to_owned(),
            );
        }
        if self.standbys > 0 && !has_synchronous_standbys {
            let standbys = self.standbys;
            warnings.push(format!(
                "synchronous_standby_names is empty, but {standbys} standbys are connected: a promoted \
                 standby may not have the last commits, and open batches would be in doubt; name a \
                 synchronous standby"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable() -> Durability {
        Durability {
            synchronous_commit: "on".to_owned(),
            fsync: "on".to_owned(),
            full_page_writes: "on".to_owned(),
            synchronous_standby_names: "*".to_owned(),
            standbys: 1,
        }
    }

    #[test]
    fn settings_that_keep_every_commit_give_no_warning() {
        assert_eq!(durable().warnings(), [""; 0]);
        let alone =
            Durability { synchronous_standby_names: String::new(), standbys: 0, ..durable() };
        assert_eq!(alone.warnings(), [""; 0]);
    }

    #[test]
    fn each_setting_that_may_lose_commits_gives_one_warning() {
        let off = || "off".to_owned();
        for (name, settings) in [
            ("synchronous_commit is off", Durability { synchronous_commit: off(), ..durable() }),
            ("fsync", Durability { fsync: off(), ..durable() }),
            ("full_page_writes", Durability { full_page_writes: off(), ..durable() }),
            (
                "synchronous_commit is local",
                Durability { synchronous_commit: "local".to_owned(), ..durable() },
            ),
            (
                "synchronous_standby_names",
                Durability { synchronous_standby_names: String::new(), ..durable() },
            ),
        ] {
            let warnings = settings.warnings();
            assert!(warnings.len() == 1 && warnings[0].starts_with(name), "{warnings:?}");
        }
    }
}
