use std::fmt;

#[cfg(feature = "postgres")]
use diesel::sql_types::Array;
use diesel::{
    QueryResult, RunQueryDsl,
    backend::Backend,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    serialize::ToSql,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Untyped},
};

use crate::dialect::Dialect;

/// One SQL statement with its values.
///
/// Its text is the same each time it runs, so that the databases prepare it once: `?` stands for
/// one value, `{x}` for a group of rows as a table named `x`.
pub(crate) struct Statement<'a> {
    sql: String,
    dialect: Dialect,
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

/// A method of [`Rows`] for each type of column.
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

    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column<'a>> {
        self.columns.iter()
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
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn pg_type(&self) -> &'static str {
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
    pub(crate) fn new(dialect: Dialect, sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), dialect, values: Vec::new(), rows: None }
    }

    /// The next `?` is this value.
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

    /// `{x}` is this group of rows.
    pub(crate) fn rows(mut self, rows: Rows<'a>) -> Self {
        self.rows = Some(rows);
        self
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn is_for_no_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.len() == 0)
    }

    /// The statement once for each of its rows, or once where it has none.
    #[cfg(feature = "sqlite")]
    pub(crate) fn for_each_row(&self) -> impl Iterator<Item = ForOneRow<'_, 'a>> {
        let times = self.rows.as_ref().map_or(1, Rows::len);
        (0..times).map(|row| ForOneRow { statement: self, row })
    }

    /// The text up to the rows, and after them.
    fn around_rows(&self) -> (&str, Option<&str>) {
        match self.sql.split_once("{x}") {
            Some((before, after)) => (before, Some(after)),
            None => (&self.sql, None),
        }
    }

    /// The text as the database is given it, with `?` for every value.
    pub(crate) fn sql(&self) -> String {
        match (self.around_rows(), &self.rows) {
            ((before, Some(after)), Some(rows)) => {
                format!("{before}{}{after}", self.dialect.table(rows))
            }
            _ => self.sql.clone(),
        }
    }
}

impl fmt::Debug for Statement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sql())
    }
}

impl Query for Statement<'_> {
    type SqlType = Untyped;
}

// Without an id of its own a query is prepared once for each text.
impl QueryId for Statement<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C> RunQueryDsl<C> for &Statement<'_> {}

#[cfg(feature = "postgres")]
impl QueryFragment<diesel::pg::Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, diesel::pg::Pg>) -> QueryResult<()> {
        self.walk(out, push_array)
    }
}

/// A statement for one of its rows.
#[cfg(feature = "sqlite")]
pub(crate) struct ForOneRow<'s, 'a> {
    statement: &'s Statement<'a>,
    row: usize,
}

#[cfg(feature = "sqlite")]
impl Query for ForOneRow<'_, '_> {
    type SqlType = Untyped;
}

#[cfg(feature = "sqlite")]
impl QueryId for ForOneRow<'_, '_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

#[cfg(feature = "sqlite")]
impl<C> RunQueryDsl<C> for ForOneRow<'_, '_> {}

#[cfg(feature = "sqlite")]
impl QueryFragment<diesel::sqlite::Sqlite> for ForOneRow<'_, '_> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, diesel::sqlite::Sqlite>) -> QueryResult<()> {
        self.statement.walk(out, |column, out| push_element(column, self.row, out))
    }
}

impl<'a> Statement<'a> {
    /// Writes the text, and each value in its place.
    fn walk<'b, DB>(
        &'b self,
        mut out: AstPass<'_, 'b, DB>,
        push_column: impl Fn(&'b Column<'a>, &mut AstPass<'_, 'b, DB>) -> QueryResult<()>,
    ) -> QueryResult<()>
    where
        DB: Backend,
        str: ToSql<Text, DB>,
        [u8]: ToSql<Binary, DB>,
        i64: ToSql<BigInt, DB>,
    {
        let mut values = self.values.iter();
        let mut push_value = |out: &mut AstPass<'_, 'b, DB>| match values.next() {
            Some(Value::Text(value)) => out.push_bind_param::<Text, str>(value),
            Some(Value::Bytes(value)) => out.push_bind_param::<Binary, [u8]>(value),
            Some(Value::Long(value)) => out.push_bind_param::<BigInt, i64>(value),
            None => Err(missing("value")),
        };
        let (before, after) = self.around_rows();
        weave(before, &mut out, &mut push_value)?;
        let Some(after) = after else { return Ok(()) };

        let rows = self.rows.as_ref().ok_or_else(|| missing("group of rows"))?;
        let mut columns = rows.columns();
        weave(&self.dialect.table(rows), &mut out, &mut |out| {
            push_column(columns.next().ok_or_else(|| missing("column"))?, out)
        })?;
        weave(after, &mut out, &mut push_value)
    }
}

fn missing(what: &str) -> diesel::result::Error {
    diesel::result::Error::QueryBuilderError(format!("a statement has no {what} left").into())
}

/// Writes `sql`, and at each `?` what `push` writes.
fn weave<'b, DB: Backend>(
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
