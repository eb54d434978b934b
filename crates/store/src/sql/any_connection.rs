//! The connection that Diesel's query builder works with.
//!
//! In a module of its own because the derive imports the whole module that it stands in, and a
//! type or import named `Connection` there would collide with Diesel's.

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
#[cfg(feature = "sqlite")]
use diesel::sqlite::SqliteConnection;

/// A connection to either database.
#[derive(diesel::MultiConnection)]
pub(crate) enum AnyConnection {
    #[cfg(feature = "postgres")]
    Postgres(PgConnection),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteConnection),
}
