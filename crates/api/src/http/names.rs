//! Values of answers that are one of a list of names, which the description of the interface has.

use grid_batch_core::batches::{BatchState, DltStatus};
use grid_batch_core::events::EventKind;
use grid_batch_core::operators::OperatorVerb;
use grid_batch_withdrawals::WithdrawalState;

use super::states::{ENDED, OPEN};

/// Declares types of values that are written by their names.
macro_rules! names {
    ($($name:ident of $named:ty: $name_of:expr,)*) => {$(
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(pub(crate) $named);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name_of: fn($named) -> &'static str = $name_of;
                serializer.serialize_str(name_of(self.0))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let name_of: fn($named) -> &'static str = $name_of;
                let names = <$named>::ALL.map(name_of);
                let schema = utoipa::openapi::ObjectBuilder::new();
                schema.schema_type(utoipa::openapi::Type::String).enum_values(Some(names)).into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}

pub(crate) use names;

/// Declares descriptions of texts that are one of these names.
macro_rules! described_names {
    ($($name:ident of $names:expr,)*) => {$(
        pub(crate) enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let names: Vec<&str> = $names.into_iter().collect();
                let schema = utoipa::openapi::ObjectBuilder::new();
                schema.schema_type(utoipa::openapi::Type::String).enum_values(Some(names)).into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}

pub(crate) use described_names;

described_names! {
    BatchStateFilter of BatchState::ALL.map(BatchState::as_str).into_iter().chain([OPEN, ENDED]),
    WithdrawalStateFilter of
        WithdrawalState::ALL.map(WithdrawalState::as_str).into_iter().chain([OPEN, ENDED]),
}

names! {
    BatchStateName of BatchState: BatchState::as_str,
    DltStatusName of DltStatus: DltStatus::as_str,
    EventKindName of EventKind: EventKind::as_str,
    VerbName of OperatorVerb: OperatorVerb::as_str,
    WithdrawalStateName of WithdrawalState: WithdrawalState::as_str,
}
