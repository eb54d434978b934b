//! `pause` and `resume`: whether new submissions start. `drain` and `release-claim`: which instance submits.

use std::process::ExitCode;

use clap::{Args, value_parser};
use grid_batch_client::given;
use grid_batch_core::ServiceId;
use serde_json::{Value, json};

use crate::commands::{
    arguments::{ActionArgs, DryRun},
    failure::Failure,
    print::{print_json, print_stdout},
    remote::{Server, action_path, change, entries, field},
};

/// Pauses services, or all: no instance submits their batches; batches under way are followed
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    services: ServicesArgs,
    #[command(flatten)]
    wait: WaitArg,
    #[command(flatten)]
    action: ActionArgs,
}

/// Ends the pause of services, or of all
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    services: ServicesArgs,
    #[command(flatten)]
    action: ActionArgs,
}

/// Makes an instance start no new submission and give its services to other instances; it still accepts batches
#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Id or name of the instance
    instance: String,
    /// Ends the drain
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    wait: WaitArg,
    #[command(flatten)]
    action: ActionArgs,
}

/// Ends the claims of services; any instance may take them next, including the same one
#[derive(Debug, Args)]
pub(crate) struct ReleaseClaimArgs {
    /// Ids of services
    #[arg(required = true)]
    service: Vec<ServiceId>,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
struct ServicesArgs {
    /// Ids of services
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    service: Vec<ServiceId>,
    /// All services, including new ones; pauses of single services are not changed
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, Args)]
struct WaitArg {
    /// Waits until no batch is being sent any more, for up to 60 seconds
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(..=60))]
    wait: Option<u64>,
}

pub(crate) fn pause(args: &PauseArgs) -> Result<ExitCode, Failure> {
    act(&args.action, args.wait.wait, args.services.targets("pause"))
}

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    act(&args.action, None, args.services.targets("resume"))
}

pub(crate) fn drain(args: &DrainArgs) -> Result<ExitCode, Failure> {
    let (verb, wait) = if args.end { ("resume", None) } else { ("drain", args.wait.wait) };
    act(&args.action, wait, vec![target("instances", &args.instance, verb)])
}

pub(crate) fn release_claim(args: &ReleaseClaimArgs) -> Result<ExitCode, Failure> {
    let targets = args.service.iter().map(|id| target("claims", id.as_str(), "release"));
    act(&args.action, None, targets.collect())
}

/// The name of the target of an action, and the path of the action.
type Target = (String, String);

fn target(kind: &str, id: &str, verb: &str) -> Target {
    (id.to_owned(), action_path(kind, id, verb))
}

impl ServicesArgs {
    fn targets(&self, verb: &str) -> Vec<Target> {
        if self.all {
            return vec![("all services".to_owned(), format!("/v1/{verb}"))];
        }
        self.service.iter().map(|id| target("services", id.as_str(), verb)).collect()
    }
}

fn act(args: &ActionArgs, wait: Option<u64>, targets: Vec<Target>) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = args;
    let server = Server::to_act(source)?;
    let wait = wait.map(|seconds| seconds.to_string());
    let mut results = Vec::new();
    for (name, path) in targets {
        let done = server.act(asked, &path, &given([("wait", wait.as_deref())]), json!({}));
        let done = done.map_err(|error| Server::failed(error).about(&name))?;
        if !output.json {
            print(asked.run, &name, &done);
        }
        results.push(json!({
            "target": name,
            "from": done["changed"]["from"],
            "to": done["changed"]["to"],
            "being_sent": done["being_sent"]["count"].as_u64().unwrap_or_default(),
        }));
    }
    if output.json {
        print_json(&json!({ "dry_run": asked.is_dry_run(), "results": results }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The change, and the batches that are still being sent.
fn print(run: DryRun, name: &str, done: &Value) {
    const MOST: usize = 10;
    print_stdout(format_args!("{}{name}: {}", run.would(), change(done)));
    match done["being_sent"]["count"].as_u64().unwrap_or_default() {
        0 => return,
        1 => print_stdout(format_args!("1 batch is being sent:")),
        count => print_stdout(format_args!("{count} batches are being sent, such as:")),
    }
    for batch in entries(&done["being_sent"], "batches").iter().take(MOST) {
        let (service, batch) = (field(batch, "service_id"), field(batch, "batch_id"));
        print_stdout(format_args!("  {service} {batch}"));
    }
}
