//! `halts`: invalid batches that stop others.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::commands::{
    arguments::ReadArgs,
    failure::Failure,
    operator::{ServiceSelection, print_wrapped},
    print::print_stdout,
    remote::{Server, age, field},
};

/// Lists the invalid batches that stop others, and since when
///
/// They are those where services.*.after_invalid is halt: service, first characters of the id, since when, and why the
/// batch is invalid. `continue` and `end-following` decide. Needs only read permission.
#[expect(clippy::doc_markdown, reason = "it is the help of the command")]
#[derive(Debug, Args)]
pub(crate) struct HaltsArgs {
    /// Only batches of this service; * stands for any characters
    #[arg(long, value_name = "PATTERN")]
    service: Option<ServiceSelection>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &HaltsArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.read.source)?;
    let (mut halts, _) = server.read_list("/v1/halts", &[], usize::MAX)?;
    halts.retain(|halt| args.service.as_ref().is_none_or(|pattern| pattern.is_of(halt)));
    Ok(args.read.output.show_list("batches", &halts, || {
        halts.iter().for_each(print);
        let place = server.place();
        match halts.iter().filter(|halt| halt["following_ends"] != true).count() {
            0 => print_stdout(format_args!("nothing is stopped{place}")),
            1 => print_stdout(format_args!("1 invalid batch stops others{place}")),
            count => print_stdout(format_args!("{count} invalid batches stop others{place}")),
        }
    }))
}

fn print(halt: &Value) {
    print_stdout(format_args!("{} {:.32}", field(halt, "service_id"), field(halt, "batch_id")));
    let since = age(halt, "stops_since");
    let stops = if halt["following_ends"] == true {
        "; the batches that follow it are being ended, as an operator decided"
    } else {
        " and stops others"
    };
    print_wrapped("    ", &format!("became invalid {since} ago{stops}"));
    if let Some(error) = halt["last_error"].as_str() {
        print_wrapped("    ", error);
    }
}
