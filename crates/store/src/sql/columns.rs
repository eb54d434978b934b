//! How rows of hand-written statements are read: each Rust type defines the SQL type of its column.

use diesel::{
    backend::Backend,
    deserialize::{self, FromSql, QueryableByName},
    row::{Field, NamedRow, Row},
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, SingleValue, SqlType, Text},
};

/// A type as which a column can be read.
pub(crate) trait ColumnType {
    type SqlType: SqlType + SingleValue;
}

macro_rules! column_types {
    ($($rust:ty: $sql:ty),* $(,)?) => {
        $(impl ColumnType for $rust {
            type SqlType = $sql;
        }

        impl ColumnType for Option<$rust> {
            type SqlType = Nullable<$sql>;
        })*
    };
}

column_types! { bool: Bool, i32: Integer, i64: BigInt, String: Text, Vec<u8>: Binary }

/// Defines a row of a hand-written statement. Each field is the column of the same name. Rows that are part of it come
/// last.
macro_rules! result_row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])* $field_vis:vis $field:ident: $type:ty),*
        $(, #[diesel(embed)] $part_vis:vis $part:ident: $part_type:ty)* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(diesel::QueryableByName)]
        $vis struct $name {
            $(
                $(#[doc = $doc])*
                #[diesel(sql_type = <$type as $crate::sql::columns::ColumnType>::SqlType)]
                $field_vis $field: $type,
            )*
            $(#[diesel(embed)] $part_vis $part: $part_type,)*
        }
    };
}
pub(crate) use result_row;

/// A row whose columns are read in their order.
pub(crate) struct Tuple<T>(pub(super) T);

macro_rules! tuples {
    ($($($type:ident: $index:tt),+;)*) => {
        $(impl<DB: Backend, $($type),+> QueryableByName<DB> for Tuple<($($type,)+)>
        where
            $($type: ColumnType + FromSql<$type::SqlType, DB>),+
        {
            fn build<'a>(row: &impl NamedRow<'a, DB>) -> deserialize::Result<Self> {
                Ok(Self(($(column::<$type, DB>(row, $index)?,)+)))
            }
        })*
    };
}

tuples! { A: 0; A: 0, B: 1; A: 0, B: 1, C: 2; }

fn column<'a, T, DB>(row: &impl Row<'a, DB>, index: usize) -> deserialize::Result<T>
where
    DB: Backend,
    T: ColumnType + FromSql<T::SqlType, DB>,
{
    let field = row.get(index).ok_or("the row has too few columns")?;
    T::from_nullable_sql(field.value())
}
