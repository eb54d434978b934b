/// Declares types of answers, each with a function `new`. A field has a name, a type, and its value, which is computed
/// from the arguments of `new`.
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
