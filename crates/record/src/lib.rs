//! Data that cross boundaries: the experiment as a user writes it, the part of it that the lab
//! sends to a guest, and the rows that come back.
//!
//! Everything here is data. Names and units of values are the contract of results: tests, reports
//! and users' scripts read them.

pub mod ablation;
pub mod bars;
pub mod caption;
pub mod command;
pub mod experiment;
pub mod guest;
pub mod headline;
pub mod histogram;
pub mod html;
pub mod isolation;
pub mod load;
pub mod markdown;
pub mod matrix;
pub mod metric;
pub mod name;
pub mod number;
pub mod picture;
pub mod pivot;
pub mod policy;
pub mod repeat;
pub mod row;
pub mod scale;
pub mod series;
pub mod shard;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod title;
pub mod workload;

pub use experiment::{Aged, Device, Experiment, FRESH, Run, TracePart};
pub use guest::{GuestSpec, Message, Module, Task};
pub use histogram::Histogram;
pub use load::Load;
pub use name::Unknown;
pub use policy::Policy;
pub use row::{Inputs, ResultFile, Row};
pub use scale::Scale;
pub use series::Series;
pub use shard::{Shard, ShardFile};
pub use summary::Summary;
pub use workload::Workload;
