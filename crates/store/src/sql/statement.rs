use std::fmt::{self, Write};
#[cfg(feature = "sqlite")]
use std::iter;

#[cfg(feature = "postgres")]
use diesel::sql_types::Array;
use diesel::{
    QueryResult, RunQueryDsl,
    backend::Backend,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    serialize::ToSql,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Untyped},
};

use super::Dialect;

/// One SQL statement with its values.
///
/// Its text starts with a comment that names it, such as `-- take_round`, so that it can be recognized in
/// `pg_stat_activity` and `pg_stat_statements` and found in the source. The text does not depend on the values, so the
/// databases prepare it once: `?` stands for one value, `{x}` for a group of rows as a table named `x`.
pub(crate) struct Statement<'a> {
    sql: String,
    values: Vec<Value<'a>>,
    rows: Option<Rows<'a>>,
}

/// One value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Long(i64),
}

/// A group of rows, column by column.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    columns: Vec<Column<'a>>,
    in_chunks: bool,
}

/// One column of a group of rows.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    name: &'static str,
    values: ColumnValues<'a>,
}

#[derive(Debug)]
enum ColumnValues<'a> {
    Text(Vec<&'a str>),
    Bytes(Vec<&'a [u8]>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Bool(Vec<bool>),
    OptionalText(Vec<Option<&'a str>>),
    OptionalBytes(Vec<Option<&'a [u8]>>),
    OptionalLong(Vec<Option<i64>>),
}

/// Defines a method of [`Rows`] for each column type.
macro_rules! columns {
    ($($method:ident: $variant:ident($type:ty)),* $(,)?) => {
        $(pub(crate) fn $method(
            mut self,
            name: &'static str,
            values: impl IntoIterator<Item = $type>,
        ) -> Self {
            let values = ColumnValues::$variant(values.into_iter().collect());
            self.columns.push(Column { name, values });
            self
        })*
    };
}

impl<'a> Rows<'a> {
    columns! {
        text: Text(&'a str),
        bytes: Bytes(&'a [u8]),
        int: Int(i32),
        long: Long(i64),
        bool: Bool(bool),
        optional_text: OptionalText(Option<&'a str>),
        optional_bytes: OptionalBytes(Option<&'a [u8]>),
        optional_long: OptionalLong(Option<i64>),
    }

    /// Passes several of the rows to SQLite at a time. Its planner does not know how few they are, so this may only be
    /// used for statements whose plan looks up the other tables by these rows, which the plan tests check.
    pub(crate) fn in_chunks(self) -> Self {
        Self { in_chunks: true, ..self }
    }

    /// The rows as a table named `x`.
    ///
    /// PostgreSQL gets one array for each column and runs the statement once. The condition, which is true for every
    /// row, makes its planner expect a single row. A custom plan then never looks better than the generic plan, so that
    /// PostgreSQL does not make a new plan for each small group, which would cost more than running the statement.
    /// SQLite has no arrays, so it gets the values of `count` rows.
    fn as_table(&self, dialect: Dialect, count: usize) -> String {
        match dialect {
            #[cfg(feature = "postgres")]
            Dialect::Postgres => {
                // This is the collation of the tables, not that of the database.
                let array = |column: &Column<'_>, text: &mut String| match column.pg_type() {
                    "text" => text.push_str("?::text[] collate \"C\""),
                    other => text.extend(["?::", other, "[]"]),
                };
                let key = self.columns.first().map_or("", |column| column.name);
                let mut text = "(select * from unnest(".to_owned();
                self.list(&mut text, |_, column, text| array(column, text));
                text.push_str(") as x(");
                self.list(&mut text, |_, column, text| text.push_str(column.name));
                text.extend([") where coalesce(", key, ", null) = ", key, ") as x"]);
                text
            }
            #[cfg(feature = "sqlite")]
            Dialect::Sqlite if count == 1 => {
                let mut text = "(select ".to_owned();
                self.list(&mut text, |_, column, text| text.extend(["? as ", column.name]));
                text + ") as x"
            }
            #[cfg(feature = "sqlite")]
            Dialect::Sqlite => {
                let mut text = "(select ".to_owned();
                self.list(&mut text, |number, column, text| {
                    let _ = write!(text, "column{number} as {}", column.name);
                });
                text.push_str(" from (values ");
                for row in 0..count {
                    text.push_str(if row == 0 { "(" } else { ", (" });
                    self.list(&mut text, |_, _, text| text.push('?'));
                    text.push(')');
                }
                text + ")) as x"
            }
        }
    }

    /// Adds something for each column and its number.
    fn list(&self, text: &mut String, add: impl Fn(usize, &Column<'_>, &mut String)) {
        for (number, column) in (1..).zip(&self.columns) {
            if number > 1 {
                text.push_str(", ");
            }
            add(number, column, text);
        }
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| match &column.values {
            ColumnValues::Text(values) => values.len(),
            ColumnValues::Bytes(values) => values.len(),
            ColumnValues::Int(values) => values.len(),
            ColumnValues::Long(values) => values.len(),
            ColumnValues::Bool(values) => values.len(),
            ColumnValues::OptionalText(values) => values.len(),
            ColumnValues::OptionalBytes(values) => values.len(),
            ColumnValues::OptionalLong(values) => values.len(),
        })
    }
}

impl Column<'_> {
    fn pg_type(&self) -> &'static str {
        match self.values {
            ColumnValues::Text(_) | ColumnValues::OptionalText(_) => "text",
            ColumnValues::Bytes(_) | ColumnValues::OptionalBytes(_) => "bytea",
            ColumnValues::Int(_) => "integer",
            ColumnValues::Long(_) | ColumnValues::OptionalLong(_) => "bigint",
            ColumnValues::Bool(_) => "boolean",
        }
    }
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), values: Vec::new(), rows: None }
    }

    /// Binds the next `?`.
    fn value(mut self, value: Value<'a>) -> Self {
        self.values.push(value);
        self
    }

    pub(crate) fn text(self, value: &'a str) -> Self {
        self.value(Value::Text(value))
    }

    pub(crate) fn bytes(self, value: &'a [u8]) -> Self {
        self.value(Value::Bytes(value))
    }

    pub(crate) fn long(self, value: i64) -> Self {
        self.value(Value::Long(value))
    }

    /// Binds `{x}`.
    pub(crate) fn rows(mut self, rows: Rows<'a>) -> Self {
        self.rows = Some(rows);
        self
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn has_no_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.len() == 0)
    }

    /// The text before the namespace is added.
    pub(crate) fn template(&self) -> &str {
        &self.sql
    }

    /// The statement for all of its rows, with this text.
    #[cfg(feature = "postgres")]
    pub(crate) fn whole<'s>(&'s self, sql: &'s str) -> StatementChunk<'s, 'a> {
        self.chunk(sql, Dialect::Postgres, 0, 1)
    }

    /// The statement once for each chunk of its rows, or once if it has none, with this text.
    #[cfg(feature = "sqlite")]
    pub(crate) fn chunks<'s>(
        &'s self,
        sql: &'s str,
    ) -> impl Iterator<Item = StatementChunk<'s, 'a>> {
        let rows = self.rows.as_ref().map_or(1, Rows::len);
        let in_chunks = self.rows.as_ref().is_some_and(|rows| rows.in_chunks);
        let mut first = 0;
        iter::from_fn(move || {
            let fits = |count: &usize| first + count <= rows && (in_chunks || *count == 1);
            let count = CHUNK_SIZES.into_iter().find(fits)?;
            let chunk = self.chunk(sql, Dialect::Sqlite, first, count);
            first += count;
            Some(chunk)
        })
    }

    /// Diesel asks for the text several times, so the table is written here.
    fn chunk<'s>(
        &'s self,
        sql: &'s str,
        dialect: Dialect,
        first: usize,
        count: usize,
    ) -> StatementChunk<'s, 'a> {
        let table = self.rows.as_ref().map(|rows| rows.as_table(dialect, count));
        let table = table.unwrap_or_default();
        StatementChunk { statement: self, parts: around_rows(sql), table, first, count }
    }

    /// The text that is sent to the database, with `?` for every value.
    #[cfg(test)]
    pub(crate) fn sql(&self, dialect: Dialect) -> String {
        match (around_rows(&self.sql), &self.rows) {
            ((before, Some(after)), Some(rows)) => {
                format!("{before}{}{after}", rows.as_table(dialect, 1))
            }
            _ => self.sql.clone(),
        }
    }
}

/// The text before and after `{x}`.
fn around_rows(sql: &str) -> (&str, Option<&str>) {
    match sql.split_once("{x}") {
        Some((before, after)) => (before, Some(after)),
        None => (sql, None),
    }
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql)
    }
}

/// How many rows are passed to SQLite at a time. It prepares the statement once for each of these numbers.
#[cfg(feature = "sqlite")]
const CHUNK_SIZES: [usize; 4] = [32, 8, 3, 1];

/// A statement for some of its rows, with the text that is sent to the database.
pub(crate) struct StatementChunk<'s, 'a> {
    statement: &'s Statement<'a>,
    /// The text before and after the rows.
    parts: (&'s str, Option<&'s str>),
    /// The rows as a table.
    table: String,
    first: usize,
    count: usize,
}

impl Query for StatementChunk<'_, '_> {
    type SqlType = Untyped;
}

// Without a static id, Diesel caches the prepared statement by its text.
impl QueryId for StatementChunk<'_, '_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> RunQueryDsl<C> for StatementChunk<'_, '_> {}

#[cfg(feature = "postgres")]
impl QueryFragment<diesel::pg::Pg> for StatementChunk<'_, '_> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, diesel::pg::Pg>) -> QueryResult<()> {
        self.walk(out, |column, _, out| push_array(column, out))
    }
}

#[cfg(feature = "sqlite")]
impl QueryFragment<diesel::sqlite::Sqlite> for StatementChunk<'_, '_> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, diesel::sqlite::Sqlite>) -> QueryResult<()> {
        self.walk(out, |column, row, out| push_element(column, self.first + row, out))
    }
}

impl<'a> StatementChunk<'_, 'a> {
    /// Writes the text and binds the values in their order. `push` binds the
    /// value of a column in a row, or all values of the column.
    fn walk<'b, DB>(
        &'b self,
        mut out: AstPass<'_, 'b, DB>,
        push: impl Fn(&'b Column<'a>, usize, &mut AstPass<'_, 'b, DB>) -> QueryResult<()>,
    ) -> QueryResult<()>
    where
        DB: Backend,
        str: ToSql<Text, DB>,
        [u8]: ToSql<Binary, DB>,
        i64: ToSql<BigInt, DB>,
    {
        let Self { statement, parts, table, count, .. } = self;
        let mut values = statement.values.iter();
        let mut push_value = |out: &mut AstPass<'_, 'b, DB>| match values.next() {
            Some(Value::Text(value)) => out.push_bind_param::<Text, str>(value),
            Some(Value::Bytes(value)) => out.push_bind_param::<Binary, [u8]>(value),
            Some(Value::Long(value)) => out.push_bind_param::<BigInt, i64>(value),
            None => Err(missing("value")),
        };
        let (before, after) = *parts;
        interleave(before, &mut out, &mut push_value)?;
        let Some(after) = after else { return Ok(()) };

        let rows = statement.rows.as_ref().ok_or_else(|| missing("group of rows"))?;
        let mut cells =
            (0..*count).flat_map(|row| rows.columns.iter().map(move |column| (row, column)));
        interleave(table, &mut out, &mut |out| {
            let (row, column) = cells.next().ok_or_else(|| missing("column"))?;
            push(column, row, out)
        })?;
        interleave(after, &mut out, &mut push_value)
    }
}

fn missing(what: &str) -> diesel::result::Error {
    diesel::result::Error::QueryBuilderError(
        format!("a statement has too few values: no {what} is left").into(),
    )
}

/// Writes `sql` with what `push` writes at each `?`.
fn interleave<'b, DB: Backend>(
    sql: &str,
    out: &mut AstPass<'_, 'b, DB>,
    push: &mut impl FnMut(&mut AstPass<'_, 'b, DB>) -> QueryResult<()>,
) -> QueryResult<()> {
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            push(out)?;
        }
        out.push_sql(part);
    }
    Ok(())
}

#[cfg(feature = "postgres")]
fn push_array<'b>(
    column: &'b Column<'_>,
    out: &mut AstPass<'_, 'b, diesel::pg::Pg>,
) -> QueryResult<()> {
    match &column.values {
        ColumnValues::Text(values) => out.push_bind_param::<Array<Text>, _>(values),
        ColumnValues::Bytes(values) => out.push_bind_param::<Array<Binary>, _>(values),
        ColumnValues::Int(values) => out.push_bind_param::<Array<Integer>, _>(values),
        ColumnValues::Long(values) => out.push_bind_param::<Array<BigInt>, _>(values),
        ColumnValues::Bool(values) => out.push_bind_param::<Array<Bool>, _>(values),
        ColumnValues::OptionalText(values) => {
            out.push_bind_param::<Array<Nullable<Text>>, _>(values)
        }
        ColumnValues::OptionalBytes(values) => {
            out.push_bind_param::<Array<Nullable<Binary>>, _>(values)
        }
        ColumnValues::OptionalLong(values) => {
            out.push_bind_param::<Array<Nullable<BigInt>>, _>(values)
        }
    }
}

#[cfg(feature = "sqlite")]
fn push_element<'b>(
    column: &'b Column<'_>,
    row: usize,
    out: &mut AstPass<'_, 'b, diesel::sqlite::Sqlite>,
) -> QueryResult<()> {
    match &column.values {
        ColumnValues::Text(values) => out.push_bind_param::<Text, str>(values[row]),
        ColumnValues::Bytes(values) => out.push_bind_param::<Binary, [u8]>(values[row]),
        ColumnValues::Int(values) => out.push_bind_param::<Integer, _>(&values[row]),
        ColumnValues::Long(values) => out.push_bind_param::<BigInt, _>(&values[row]),
        ColumnValues::Bool(values) => out.push_bind_param::<Bool, _>(&values[row]),
        ColumnValues::OptionalText(values) => {
            out.push_bind_param::<Nullable<Text>, _>(&values[row])
        }
        ColumnValues::OptionalBytes(values) => {
            out.push_bind_param::<Nullable<Binary>, _>(&values[row])
        }
        ColumnValues::OptionalLong(values) => {
            out.push_bind_param::<Nullable<BigInt>, _>(&values[row])
        }
    }
}
