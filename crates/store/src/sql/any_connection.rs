//! The backend of queries that are built with Diesel's query builder for either database, and the code with which a
//! session runs them.
//!
//! It is a separate module, because the derive imports its whole module, in which a type or import named `Connection`
//! would collide with Diesel's.

#[cfg(feature = "postgres")]
use diesel::pg::PgConnection;
#[cfg(feature = "sqlite")]
use diesel::sqlite::SqliteConnection;

pub(crate) use run::load_qualified;

/// A connection to either database. Diesel derives [`MultiBackend`] from it.
#[derive(diesel::MultiConnection)]
pub(crate) enum AnyConnection {
    #[cfg(feature = "postgres")]
    Postgres(PgConnection),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteConnection),
}

/// Runs queries for [`MultiBackend`] on a connection of one database. The code that Diesel derives does the same, but
/// needs to own the connection and does not allow changing the names of tables.
mod run {
    use std::marker::PhantomData;

    use diesel::{
        QueryResult,
        backend::Backend,
        connection::{DefaultLoadingMode, LoadConnection},
        deserialize::FromSqlRow,
        internal::derives::multiconnection::{AstPassHelper as _, MultiConnectionHelper},
        query_builder::{AstPass, Query, QueryBuilder as _, QueryFragment, QueryId},
        query_dsl::CompatibleType,
        result::Error,
        sql_types::{TypeMetadata, Untyped},
    };

    use super::{AnyConnection, MultiBackend};
    use crate::sql::{
        Dialect,
        connection::{Connection, Session},
        namespace::Namespace,
    };

    type Builder = <MultiBackend as Backend>::QueryBuilder;
    type Collector<'a> = <MultiBackend as Backend>::BindCollector<'a>;
    type AnyRow<'c, 'q> = <AnyConnection as LoadConnection>::Row<'c, 'q>;

    pub(crate) fn load_qualified<Q, R>(connection: &mut Connection, query: Q) -> QueryResult<Vec<R>>
    where
        Q: Query + QueryFragment<MultiBackend>,
        Q::SqlType: CompatibleType<R, MultiBackend>,
        R: FromSqlRow<<Q::SqlType as CompatibleType<R, MultiBackend>>::SqlType, MultiBackend>,
    {
        let namespace = connection.namespace().clone();
        match &mut connection.session {
            #[cfg(feature = "postgres")]
            Session::Postgres(inner) => {
                let query = Qualified::<_, diesel::pg::PgConnection>::new(query, namespace);
                let rows = LoadConnection::<DefaultLoadingMode>::load(&mut ***inner, query)?;
                rows.map(|row| build(&AnyRow::Postgres(row?))).collect()
            }
            #[cfg(feature = "sqlite")]
            Session::Sqlite(inner) => {
                let query = Qualified::<_, diesel::sqlite::SqliteConnection>::new(query, namespace);
                let rows = LoadConnection::<DefaultLoadingMode>::load(&mut ***inner, query)?;
                rows.map(|row| build(&AnyRow::Sqlite(row?))).collect()
            }
        }
    }

    fn build<R: FromSqlRow<ST, MultiBackend>, ST>(row: &AnyRow<'_, '_>) -> QueryResult<R> {
        R::build_from_row(row).map_err(Error::DeserializationError)
    }

    /// A query whose table names get a namespace.
    struct Qualified<Q, C> {
        query: Q,
        namespace: Namespace,
        backend: MultiBackend,
        connection: PhantomData<C>,
    }

    impl<Q, C: OneOfBoth> Qualified<Q, C> {
        fn new(query: Q, namespace: Namespace) -> Self {
            Self { query, namespace, backend: C::backend(), connection: PhantomData }
        }
    }

    impl<Q, C> Query for Qualified<Q, C> {
        type SqlType = Untyped;
    }

    // Without a static id, Diesel caches the prepared statement by its text, which includes the namespace.
    impl<Q, C> QueryId for Qualified<Q, C> {
        type QueryId = ();
        const HAS_STATIC_QUERY_ID: bool = false;
    }

    impl<Q, C, DB> QueryFragment<DB> for Qualified<Q, C>
    where
        DB: Backend + 'static,
        Q: QueryFragment<MultiBackend>,
        C: OneOfBoth<Backend = DB>,
    {
        fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
            let mut builder = C::builder();
            self.query.to_sql(&mut builder, &self.backend)?;
            pass.push_sql(&self.namespace.qualify(C::DIALECT, &builder.finish()));
            if !self.query.is_safe_to_cache_prepared(&self.backend)? {
                pass.unsafe_to_cache_prepared();
            }
            if let Some((collector, lookup)) = pass.bind_collector() {
                C::collect(&self.query, &self.backend, collector, lookup)?;
            }
            Ok(())
        }
    }

    /// Connections on which queries for both databases can run.
    trait OneOfBoth: LoadConnection + MultiConnectionHelper {
        const DIALECT: Dialect;

        fn backend() -> MultiBackend;
        fn builder() -> Builder;

        fn collect<'b>(
            query: &'b impl QueryFragment<MultiBackend>,
            backend: &'b MultiBackend,
            collector: &mut <Self::Backend as Backend>::BindCollector<'b>,
            lookup: &mut <Self::Backend as TypeMetadata>::MetadataLookup,
        ) -> QueryResult<()>;
    }

    macro_rules! one_of_both {
        ($variant:ident, $connection:ty) => {
            impl OneOfBoth for $connection {
                const DIALECT: Dialect = Dialect::$variant;

                fn backend() -> MultiBackend {
                    MultiBackend::$variant(Default::default())
                }

                fn builder() -> Builder {
                    Builder::$variant(Default::default())
                }

                fn collect<'b>(
                    query: &'b impl QueryFragment<MultiBackend>,
                    backend: &'b MultiBackend,
                    collector: &mut <Self::Backend as Backend>::BindCollector<'b>,
                    lookup: &mut <Self::Backend as TypeMetadata>::MetadataLookup,
                ) -> QueryResult<()> {
                    let mut collected = Collector::$variant(Default::default());
                    query.collect_binds(&mut collected, Self::to_any(lookup), backend)?;
                    *collector = match collected {
                        Collector::$variant(collected) => collected,
                        _ => {
                            return Err(Error::QueryBuilderError(
                                "values of another database".into(),
                            ));
                        }
                    };
                    Ok(())
                }
            }
        };
    }

    #[cfg(feature = "postgres")]
    one_of_both!(Postgres, diesel::pg::PgConnection);
    #[cfg(feature = "sqlite")]
    one_of_both!(Sqlite, diesel::sqlite::SqliteConnection);
}
