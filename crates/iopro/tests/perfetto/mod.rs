//! The part of Perfetto's trace format that the tests read: messages and field numbers from its
//! public definition (`protos/perfetto/trace`). The decoder shares nothing with the writer.

/// A trace: a list of packets.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// Packets in the order of time.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One packet of the trace: an event or the description of a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Time of the packet, in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Sequence that the packet belongs to.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// A begin or an end of a slice.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// The description of a new track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// A track of the graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Identity of the track in the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name that is shown for the track.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Set if the track stands for a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Set if the track stands for a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// `uuid` of the track that this one is below.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
}

/// The process that a track stands for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Process id (`tgid`).
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name that is shown for the process.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// The thread that a track stands for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    /// Id of the thread's process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Thread id, as the kernel numbers threads.
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    /// Name that is shown for the thread.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// The begin or the end of a slice.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Values that are shown for the slice when it is selected.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// `TYPE_SLICE_BEGIN` (1) or `TYPE_SLICE_END` (2).
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// `uuid` of the slice's track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Categories that slices can be filtered by.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Name of the slice, on its begin only.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Ids of arrows that start at this slice.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Ids of arrows that end at this slice.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// A named value of a slice.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Name of the value.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// The value, if it is a number.
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    /// The value, if it is text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
}
