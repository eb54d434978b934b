//! The fingerprint of the schema: each column, index and foreign key as the database reports it, one per line of
//! `migrations/*.objects`.

use std::collections::BTreeSet;

use super::{
    Connection, Statement, StoreError,
    migrations::{Part, part_of_table},
    result_row,
};

result_row! {
    /// A column, an index or a foreign key.
    #[derive(Debug, Clone)]
    struct SchemaObject {
        table_name: String,
        object: String,
        /// Whether it may refuse rows that could be stored without it.
        restricts: bool,
    }
}

impl SchemaObject {
    fn line(&self) -> String {
        format!("{}: {}", self.table_name, self.object)
    }
}

/// The objects that this release expects but the database does not have, and additional ones that restrict its tables.
/// Other additional objects, such as an operator's index, are harmless.
pub(super) fn schema_differences(
    connection: &mut Connection,
    parts: &[&'static Part],
) -> Result<Vec<String>, StoreError> {
    let found = read_objects(connection)?;
    let has_part = |line: &&str| {
        let part = line.split(": ").next().and_then(part_of_table);
        part.is_none_or(|part| parts.contains(&part))
    };
    let expected: Vec<&str> =
        connection.dialect().schema_objects().lines().filter(has_part).collect();
    Ok(differences(&expected.join("\n"), &found))
}

fn read_objects(connection: &mut Connection) -> Result<Vec<SchemaObject>, StoreError> {
    let query = connection.dialect().schema_objects_query(connection.namespace());
    connection.load(&Statement::new(query))
}

fn differences(expected: &str, found: &[SchemaObject]) -> Vec<String> {
    let expected: BTreeSet<&str> = expected.lines().collect();
    let tables: BTreeSet<&str> =
        expected.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let lines: BTreeSet<String> = found.iter().map(SchemaObject::line).collect();
    let missing = expected
        .iter()
        .filter(|line| !lines.contains(**line))
        .map(|line| format!("there is no \"{line}\""));
    let additional = found.iter().filter(|object| {
        object.restricts
            && tables.contains(&*object.table_name)
            && !expected.contains(&*object.line())
    });
    let additional = additional.map(|object| format!("there is \"{}\"", object.line()));
    missing.chain(additional).collect()
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path, time::Duration};

    use grid_batch_test_postgres::TestDatabase;

    use super::*;
    use crate::sql::{
        Dialect, dialect::SessionLimits, migrations::migrate_all_parts, namespace::Namespace,
    };

    /// Compares the files with the objects that all migrations create, or writes the files.
    fn check_file(url: &str) {
        let limit = Duration::from_secs(9);
        let limits = SessionLimits { lock: limit, idle_transaction: limit };
        let mut connection =
            Connection::open(&url.parse().unwrap(), limits, &Namespace::default()).unwrap();
        let migrated = migrate_all_parts(&mut connection);
        let dialect = connection.dialect();
        if env::var_os("UPDATE_DOCS").is_none() {
            migrated.unwrap();
        }
        let lines: BTreeSet<String> =
            read_objects(&mut connection).unwrap().iter().map(SchemaObject::line).collect();
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        if env::var_os("UPDATE_DOCS").is_some() {
            let name = if dialect == Dialect::Postgres { "postgres" } else { "sqlite" };
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
            fs::write(folder.join(format!("{name}.objects")), text).unwrap();
        } else {
            assert_eq!(
                text,
                dialect.schema_objects(),
                "run this test with UPDATE_DOCS=1 to update migrations/*.objects"
            );
        }
    }

    #[test]
    fn objects_are_those_of_the_migrations_on_postgres() {
        check_file(TestDatabase::create().url());
    }

    #[test]
    fn objects_are_those_of_the_migrations_on_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        check_file(&format!("sqlite://{}/objects.db", directory.path().display()));
    }

    fn object(object: &str, restricts: bool) -> SchemaObject {
        SchemaObject { table_name: "a".to_owned(), object: object.to_owned(), restricts }
    }

    #[test]
    fn only_what_is_missing_or_restricts_is_a_difference() {
        let expected = "a: column b text\na: index c (b)\n";
        let all = [object("column b text", false), object("index c (b)", false)];
        assert!(differences(expected, &all).is_empty());
        assert_eq!(differences(expected, &all[..1]), ["there is no \"a: index c (b)\""]);
        let harmless = [all.as_slice(), &[object("column d text", false)]].concat();
        assert!(differences(expected, &harmless).is_empty());
        let other_table = SchemaObject { table_name: "other".to_owned(), ..object("e", true) };
        assert!(differences(expected, &[all.as_slice(), &[other_table]].concat()).is_empty());
        let restricted = [all.as_slice(), &[object("column d text not null", true)]].concat();
        let found = differences(expected, &restricted);
        assert_eq!(found, ["there is \"a: column d text not null\""]);
    }
}
