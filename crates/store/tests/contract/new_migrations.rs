//! A migration of this release in a database of an earlier one, which has the tables of all parts.

use grid_batch_store::{Dialect, Namespace, migrations};

use crate::{
    fixture::{Database, on_both},
    namespaces::record_as_earlier_release,
};

on_both! {
    new_migrations_are_recorded_for_earlier_releases,
}

fn new_migrations_are_recorded_for_earlier_releases(db: &Database) {
    drop(db.open());
    let dialect = if db.is_postgres() { Dialect::Postgres } else { Dialect::Sqlite };
    let migrations = migrations(dialect, &Namespace::default());
    // One migration can have several steps, with versions that begin with its own.
    let version = migrations.last().unwrap().version.split('_').next().unwrap();
    for step in migrations.iter().rev().take_while(|it| it.version.starts_with(version)) {
        db.execute(&step.down).unwrap();
    }
    record_as_earlier_release(db);
    drop(db.open());
    for table in ["grid_batch_migrations", "__diesel_schema_migrations"] {
        let found = db
            .number(&format!("select count(*) as number from {table} where version = '{version}'"));
        assert_eq!(found, 1, "{table}");
    }
}
