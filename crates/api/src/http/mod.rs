//! HTTP requests and answers: bodies, queries, links, ids, times and errors.

mod body;
mod bytes;
mod client;
mod content_type;
mod dialect;
mod error;
mod error_forms;
mod error_response;
mod fields;
mod json_types;
mod link;
mod memory_budget;
mod names;
mod page;
mod path_id;
mod query;
mod request_error;
mod server_error;
mod slow_bodies;
mod states;
mod time;
mod trace;
mod wait;

pub(crate) use body::{BodyReader, RequestBody, discard_body};
pub(crate) use bytes::Bytes;
pub(crate) use client::{Client, counted_address};
pub(crate) use content_type::{OtherContentType, batch_content_type, json_content_type};
pub(crate) use dialect::{ErrorDialect, write_errors};
pub(crate) use error::{ApiError, Refusal, Refused, refusals};
pub(crate) use error_forms::{
    Problems, SawtoothErrors, ScabbardErrors, WithdrawalProblems, error_schemas,
};
pub(crate) use fields::{
    NoParams, PageLimit, PageStart, Params, names_of, parse_value, read_json_object, read_params,
};
pub(crate) use json_types::json_types;
pub(crate) use link::{Links, push_ids};
pub(crate) use memory_budget::{MemoryBudget, MemoryReservation};
pub(crate) use names::{
    BatchStateFilter, BatchStateName, DltStatusName, EventKindName, VerbName,
    WithdrawalStateFilter, WithdrawalStateName, described_names, names,
};
pub(crate) use page::{PageJson, PageParams};
pub(crate) use path_id::{PathId, parse_path_id, path_text};
pub(crate) use query::Query;
pub(crate) use request_error::RequestError;
pub(crate) use server_error::{FailureCause, ServerError, random_failed};
pub(crate) use states::{ENDED, OPEN, parse_states, parse_states_of};
pub(crate) use time::Time;
pub(crate) use trace::read_trace;
pub(crate) use wait::WaitSeconds;
