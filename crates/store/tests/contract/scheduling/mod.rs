//! Several batches of a service under way.

mod asking;
mod busy_rows;
mod conflicts;
mod dependencies;
mod dependents;
pub mod fixture;
mod halts;
mod halts_in_order;
mod halts_of_commands;
mod halts_of_one_lane;
mod held_lanes;
mod in_lanes;
mod instances;
mod kept_order;
mod lengths;
mod lists;
mod lookups;
mod missing;
mod order;
mod other_rules;
mod reads;
mod reads_of_dependents;
mod strategies;
mod wait_reasons;
mod without_lane;
