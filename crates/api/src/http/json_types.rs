/// Declares types of answers. Each field has its type and what it is made of, from the values that `new` takes.
macro_rules! json_types {
    ($(
        $(#[$($about:tt)*])*
        $vis:vis struct $name:ident($($given:ident: $given_type:ty),* $(,)?) {
            $($(#[$($attribute:tt)*])* $field:ident: $type:ty = $value:expr,)*
        }
    )*) => {$(
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        $(#[$($about)*])*
        $vis struct $name {
            $($(#[$($attribute)*])* $field: $type,)*
        }

        impl $name {
            $vis fn new($($given: $given_type),*) -> Self {
                Self { $($field: $value),* }
            }
        }
    )*};
}

pub(crate) use json_types;
