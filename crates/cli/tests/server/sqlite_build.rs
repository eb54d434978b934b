//! How SQLite is compiled for the program, by `.cargo/config.toml`.

use diesel::{Connection, RunQueryDsl, SqliteConnection, dsl::sql, select, sql_types::Bool};

/// With `fdatasync`, a commit does not wait for the journal of the file system. SQLite does not report whether it uses
/// it, so the test looks at another part of the same variable.
#[test]
fn sqlite_is_compiled_with_the_options_of_the_repository() {
    let config = include_str!("../../../../.cargo/config.toml");
    assert!(config.contains("-DHAVE_FDATASYNC=1"));
    let mut connection = SqliteConnection::establish(":memory:").unwrap();
    let query = select(sql::<Bool>("sqlite_compileoption_used('ENABLE_FTS5')"));
    assert_eq!(query.get_result::<bool>(&mut connection), Ok(false));
}
