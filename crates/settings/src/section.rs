/// Declares the settings of a section, once each: a struct with a field for each setting.
///
/// The struct's first literal is what the names of its settings begin with. A field has its comment, which is the help of
/// the setting up to the first empty line, and says when to change it after that; its type; the form of its value in the
/// file with the default; and, after dots, the other methods of [`Setting`](crate::Setting). The type reads the value as a
/// [`SettingValue`](crate::SettingValue), unless `=> FUNCTION` names another reader, such as
/// [`SettingValues::get_list`](crate::SettingValues::get_list).
///
/// ```
/// use std::time::Duration;
/// use grid_batch_settings::{SettingTable, SettingValues, settings};
///
/// settings! {
///     /// The ledger `mine`.
///     #[derive(Debug)]
///     pub struct MySettings in "ledger.mine." {
///         /// Blocks that are left until a deadline.
///         ///
///         /// Raise it if blocks come fast.
///         pub margin: u32 = number("10").between(1, 1000).equal(),
///         /// Accounts that pay.
///         pub accounts: Vec<String> = list("") => SettingValues::get_list,
///     }
/// }
///
/// assert_eq!(MySettings::margin.name, "ledger.mine.margin");
/// assert_eq!(MySettings::margin.help(), "Blocks that are left until a deadline");
/// let values = SettingValues::defaults(SettingTable::new(MySettings::SETTINGS));
/// assert_eq!(MySettings::read(&values)?.margin, 10);
/// # Ok::<(), grid_batch_settings::ConfigError>(())
/// ```
///
/// The struct has the constant `SETTINGS`, the function `read`, and for each field a constant with the same name, which is
/// the [`Setting`](crate::Setting).
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $section:ident in $prefix:literal {
            $(
                $(#[doc = $doc:literal])*
                $field_visibility:vis $field:ident: $type:ty
                    = $form:ident($default:literal)$(.$option:ident($($argument:expr),*))* $(=> $read:path)?
            ),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $section {
            $($(#[doc = $doc])* $field_visibility $field: $type,)*
        }

        #[expect(non_upper_case_globals, reason = "the constant of a setting has the name of its field")]
        impl $section {
            $(
                $(#[doc = $doc])*
                $field_visibility const $field: $crate::Setting =
                    $crate::Setting::$form(concat!($prefix, stringify!($field)), $default, &[$($doc),*])
                        $(.$option($($argument),*))*;
            )*

            /// The declarations.
            $visibility const SETTINGS: &'static [$crate::Setting] = &[$(Self::$field),*];

            /// Reads the values.
            $visibility fn read(values: &$crate::SettingValues) -> Result<Self, $crate::ConfigError> {
                Ok(Self { $($field: $crate::settings!(@reader $($read)?)(values, &Self::$field)?),* })
            }
        }
    };
    (@reader) => { $crate::SettingValues::get };
    (@reader $read:path) => { $read };
}
