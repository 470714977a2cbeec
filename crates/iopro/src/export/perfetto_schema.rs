//! The part of Perfetto's trace format that is written: messages and field numbers from its public
//! definition (`protos/perfetto/trace`), encoded as Protocol Buffers. It is written out here
//! because it is small, and the licences of the crates for it do not go with ours.

/// Wire types of Protocol Buffers.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;

/// Encoded fields of a message.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn key(&mut self, tag: u64, encoding: u64) {
        self.varint(tag << 3 | encoding);
    }

    /// A negative number is its two's complement in 64 bits.
    fn number(&mut self, tag: u64, number: Option<u64>) {
        if let Some(number) = number {
            self.key(tag, VARINT);
            self.varint(number);
        }
    }

    fn signed(&mut self, tag: u64, number: Option<i64>) {
        self.number(tag, number.map(i64::cast_unsigned));
    }

    fn bytes(&mut self, tag: u64, bytes: &[u8]) {
        self.key(tag, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, tag: u64, text: Option<&String>) {
        if let Some(text) = text {
            self.bytes(tag, text.as_bytes());
        }
    }

    fn ids(&mut self, tag: u64, ids: &[u64]) {
        for id in ids {
            self.key(tag, FIXED_64);
            self.0.extend_from_slice(&id.to_le_bytes());
        }
    }
}

/// One packet of the trace: an event or the description of a track.
#[derive(Default)]
pub struct TracePacket {
    /// Time of the packet, in nanoseconds.
    pub timestamp: Option<u64>,
    /// Sequence that the packet belongs to; required on packets with track events.
    pub trusted_packet_sequence_id: Option<u32>,
    /// A begin or an end of a slice.
    pub track_event: Option<TrackEvent>,
    /// The description of a new track.
    pub track_descriptor: Option<TrackDescriptor>,
}

impl TracePacket {
    /// Encodes a trace with this packet alone. Traces one after the other are a trace, too.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = Fields::default();
        packet.number(8, self.timestamp);
        packet.number(10, self.trusted_packet_sequence_id.map(u64::from));
        if let Some(event) = &self.track_event {
            packet.bytes(11, &event.encode());
        }
        if let Some(track) = &self.track_descriptor {
            packet.bytes(60, &track.encode());
        }
        let mut trace = Fields::default();
        trace.bytes(1, &packet.0);
        trace.0
    }
}

/// A track of the graph.
#[derive(Default)]
pub struct TrackDescriptor {
    /// Identity of the track in the trace.
    pub uuid: Option<u64>,
    /// Name that is shown for the track.
    pub name: Option<String>,
    /// Set if the track stands for a process.
    pub process: Option<ProcessDescriptor>,
    /// Set if the track stands for a thread.
    pub thread: Option<ThreadDescriptor>,
    /// `uuid` of the track that this one is below; None at the top.
    pub parent_uuid: Option<u64>,
}

impl TrackDescriptor {
    fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.number(1, self.uuid);
        fields.text(2, self.name.as_ref());
        if let Some(process) = &self.process {
            let mut of_process = Fields::default();
            of_process.signed(1, process.pid.map(i64::from));
            of_process.text(6, process.process_name.as_ref());
            fields.bytes(3, &of_process.0);
        }
        if let Some(thread) = &self.thread {
            let mut of_thread = Fields::default();
            of_thread.signed(1, thread.pid.map(i64::from));
            of_thread.signed(2, thread.tid.map(i64::from));
            of_thread.text(5, thread.thread_name.as_ref());
            fields.bytes(4, &of_thread.0);
        }
        fields.number(5, self.parent_uuid);
        fields.0
    }
}

/// The process that a track stands for.
#[derive(Default)]
pub struct ProcessDescriptor {
    /// Process id (`tgid`).
    pub pid: Option<i32>,
    /// Name that is shown for the process.
    pub process_name: Option<String>,
}

/// The thread that a track stands for.
#[derive(Default)]
pub struct ThreadDescriptor {
    /// Id of the thread's process.
    pub pid: Option<i32>,
    /// Thread id, as the kernel numbers threads.
    pub tid: Option<i32>,
    /// Name that is shown for the thread.
    pub thread_name: Option<String>,
}

/// The begin or the end of a slice.
#[derive(Default)]
pub struct TrackEvent {
    /// Values that are shown for the slice when it is selected.
    pub debug_annotations: Vec<DebugAnnotation>,
    /// [`SLICE_BEGIN`] or [`SLICE_END`].
    pub r#type: Option<i32>,
    /// `uuid` of the slice's track.
    pub track_uuid: Option<u64>,
    /// Categories that slices can be filtered by.
    pub categories: Vec<String>,
    /// Name of the slice, on its begin only.
    pub name: Option<String>,
    /// Ids of arrows that start at this slice.
    pub flow_ids: Vec<u64>,
    /// Ids of arrows that end at this slice.
    pub terminating_flow_ids: Vec<u64>,
}

impl TrackEvent {
    fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        for annotation in &self.debug_annotations {
            let mut of_it = Fields::default();
            of_it.signed(4, annotation.int_value);
            of_it.text(6, annotation.string_value.as_ref());
            of_it.text(10, annotation.name.as_ref());
            fields.bytes(4, &of_it.0);
        }
        fields.signed(9, self.r#type.map(i64::from));
        fields.number(11, self.track_uuid);
        for category in &self.categories {
            fields.text(22, Some(category));
        }
        fields.text(23, self.name.as_ref());
        fields.ids(47, &self.flow_ids);
        fields.ids(48, &self.terminating_flow_ids);
        fields.0
    }
}

/// `TYPE_SLICE_BEGIN` of `TrackEvent.Type`.
pub const SLICE_BEGIN: i32 = 1;
/// `TYPE_SLICE_END` of `TrackEvent.Type`.
pub const SLICE_END: i32 = 2;

/// A named value of a slice.
#[derive(Default)]
pub struct DebugAnnotation {
    /// Name of the value.
    pub name: Option<String>,
    /// The value, if it is a number.
    pub int_value: Option<i64>,
    /// The value, if it is text.
    pub string_value: Option<String>,
}
