//! Messages of a D-Bus (D-Bus Specification, "Message Protocol"), as far as few methods without
//! structures need them.

/// Types of messages, by their second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call of a method.
    Call = 1,
    /// The result of a call.
    Return = 2,
    /// The failure of a call.
    Error = 3,
    /// A signal of an event.
    Signal = 4,
}

/// Header flag NO_REPLY_EXPECTED: the caller does not wait for a reply.
const NO_REPLY: u8 = 1;

/// Length of the header's fixed part; the length of the array of fields follows.
const FIXED_BYTES: usize = 12;

/// One message. Absent fields are empty: a field that is present never is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Type of the message.
    pub kind: Kind,
    /// Whether the caller waits for a reply.
    pub wants_reply: bool,
    /// Number by which a reply names the message; never 0.
    pub serial: u32,
    /// Path of the object.
    pub path: String,
    /// Interface of the method or signal.
    pub interface: String,
    /// Name of the method or signal.
    pub member: String,
    /// Name of the error.
    pub error: String,
    /// Serial of the message that this one replies to, or 0.
    pub reply_serial: u32,
    /// Bus name of the receiver.
    pub destination: String,
    /// Bus name of the sender, which the bus itself fills in.
    pub sender: String,
    /// Arguments of the message.
    pub body: Body,
}

/// Bodies that can be encoded and decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Body without arguments.
    Empty,
    /// One 32-bit number, signature `u`; a number of signature `i` that is not negative as well.
    Number(u32),
    /// One string, signature `s`.
    Text(String),
    /// Two or three strings, signature `ss` or `sss`.
    Texts(Vec<String>),
    /// A name and flags, signature `su`, as `RequestName` takes them.
    Name(String, u32),
    /// Arguments of any other signature, which are not decoded.
    Other(String),
}

/// Codes of header fields, and the types of their values.
const FIELDS: [(u8, u8); 8] = [
    (1, b'o'),
    (2, b's'),
    (3, b's'),
    (4, b's'),
    (5, b'u'),
    (6, b's'),
    (7, b's'),
    (8, b'g'),
];

impl Message {
    /// A message of this type without fields and arguments.
    pub(crate) fn new(kind: Kind) -> Self {
        Message {
            kind,
            wants_reply: false,
            serial: 0,
            path: String::new(),
            interface: String::new(),
            member: String::new(),
            error: String::new(),
            reply_serial: 0,
            destination: String::new(),
            sender: String::new(),
            body: Body::Empty,
        }
    }

    /// The fields that a reply needs. The others are dropped, since a caller may make them long.
    pub fn to_be_answered(&self) -> Self {
        Message {
            wants_reply: self.wants_reply,
            serial: self.serial,
            sender: self.sender.clone(),
            ..Message::new(self.kind)
        }
    }

    /// Texts of the fields, in the order of [`FIELDS`].
    fn texts(&self) -> [&str; 8] {
        [
            &self.path,
            &self.interface,
            &self.member,
            &self.error,
            "",
            &self.destination,
            &self.sender,
            self.body.signature(),
        ]
    }

    /// Encodes the message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Writer::default();
        self.body.write(&mut body);
        let mut header = Writer::default();
        let flags = if self.wants_reply { 0 } else { NO_REPLY };
        header.0.extend([b'l', self.kind as u8, flags, 1]);
        header.number(body.0.len() as u32);
        header.number(self.serial);
        header.number(0);
        let begin = header.0.len();
        for ((code, kind), text) in FIELDS.into_iter().zip(self.texts()) {
            let is_there = match kind {
                b'u' => self.reply_serial != 0,
                _ => !text.is_empty(),
            };
            if !is_there {
                continue;
            }
            header.align(8);
            header.0.extend([code, 1, kind, 0]);
            match kind {
                b'u' => header.number(self.reply_serial),
                b'g' => header.signature(text),
                _ => header.text(text),
            }
        }
        let length = (header.0.len() - begin) as u32;
        header.0[FIXED_BYTES..begin].copy_from_slice(&length.to_le_bytes());
        header.align(8);
        header.0.extend(body.0);
        header.0
    }

    /// Length of the message that begins with these bytes. `None` if they are too few to tell, 0 if
    /// they do not begin a message.
    pub(crate) fn length(bytes: &[u8]) -> Option<u64> {
        let head = bytes.get(..FIXED_BYTES + 4)?;
        let Some(mut reader) = Reader::of(head) else {
            return Some(0);
        };
        reader.at = 4;
        let body = reader.number()?;
        reader.at = FIXED_BYTES;
        let fields = reader.number()?;
        let header = (u64::from(fields) + FIXED_BYTES as u64 + 4).next_multiple_of(8);
        Some(header + u64::from(body))
    }

    /// Decodes a whole message; None if it is not valid.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::of(bytes)?;
        let kinds = [Kind::Call, Kind::Return, Kind::Error, Kind::Signal];
        let code = *bytes.get(1)?;
        let kind = kinds.into_iter().find(|it| *it as u8 == code);
        let mut message = Message::new(kind?);
        message.wants_reply = kind? == Kind::Call && bytes.get(2)? & NO_REPLY == 0;
        reader.at = 8;
        message.serial = reader.number()?;
        let length = reader.number()?;
        let end = reader.at.checked_add(usize::try_from(length).ok()?)?;
        let mut signature = String::new();
        while reader.at < end {
            reader.align(8);
            let code = reader.byte()?;
            let kind = reader.signature()?;
            match (code, kind.as_str()) {
                (1, "o") => message.path = reader.text()?,
                (2, "s") => message.interface = reader.text()?,
                (3, "s") => message.member = reader.text()?,
                (4, "s") => message.error = reader.text()?,
                (5, "u") => message.reply_serial = reader.number()?,
                (6, "s") => message.destination = reader.text()?,
                (7, "s") => message.sender = reader.text()?,
                (8, "g") => signature = reader.signature()?,
                // Fields of later versions of the protocol are ignored.
                (9.., "s" | "o") => drop(reader.text()?),
                (9.., "u") => drop(reader.number()?),
                _ => return None,
            }
        }
        reader.align(8);
        message.body = match signature.as_str() {
            "" => Body::Empty,
            "u" => Body::Number(reader.number()?),
            "s" => Body::Text(reader.text()?),
            "i" => match reader.number()? {
                number if i32::try_from(number).is_ok() => Body::Number(number),
                _ => Body::Other(signature),
            },
            "ss" | "sss" => {
                let texts = signature.bytes().map(|_| reader.text());
                Body::Texts(texts.collect::<Option<_>>()?)
            }
            "su" => Body::Name(reader.text()?, reader.number()?),
            _ => Body::Other(signature),
        };
        Some(message)
    }
}

impl Body {
    fn signature(&self) -> &str {
        match self {
            Body::Empty => "",
            Body::Number(_) => "u",
            Body::Text(_) => "s",
            Body::Texts(texts) if texts.len() == 2 => "ss",
            Body::Texts(_) => "sss",
            Body::Name(..) => "su",
            Body::Other(signature) => signature,
        }
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Body::Empty | Body::Other(_) => {}
            Body::Number(number) => writer.number(*number),
            Body::Text(text) => writer.text(text),
            Body::Texts(texts) => texts.iter().for_each(|it| writer.text(it)),
            Body::Name(name, flags) => {
                writer.text(name);
                writer.number(*flags);
            }
        }
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u32);
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, text: &str) {
        self.0.push(text.len() as u8);
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    number_of: fn([u8; 4]) -> u32,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let number_of = match bytes.first()? {
            b'l' => u32::from_le_bytes,
            b'B' => u32::from_be_bytes,
            _ => return None,
        };
        Some(Reader {
            bytes,
            at: 0,
            number_of,
        })
    }

    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn number(&mut self) -> Option<u32> {
        self.align(4);
        Some((self.number_of)(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        self.terminated(usize::try_from(length).ok()?)
    }

    fn signature(&mut self) -> Option<String> {
        let length = self.byte()?;
        self.terminated(length.into())
    }

    fn terminated(&mut self, length: usize) -> Option<String> {
        let text = self.take(length)?.to_vec();
        self.byte()?;
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        let kind = prop::sample::select(vec![Kind::Call, Kind::Return, Kind::Error, Kind::Signal]);
        let body = prop_oneof![
            Just(Body::Empty),
            any::<u32>().prop_map(Body::Number),
            ".{0,20}".prop_map(Body::Text),
            prop::collection::vec(".{0,20}", 2..=3).prop_map(Body::Texts),
            (".{0,20}", any::<u32>()).prop_map(|(name, flags)| Body::Name(name, flags)),
        ];
        let texts = prop::collection::vec("[a-z.:/é]{0,9}", 6);
        (kind, any::<bool>(), any::<u32>(), any::<u32>(), texts, body).prop_map(
            |(kind, wants, serial, reply_serial, texts, body)| {
                let mut texts = texts.into_iter();
                let mut text = || texts.next().unwrap_or_default();
                Message {
                    kind,
                    wants_reply: wants && kind == Kind::Call,
                    serial,
                    path: text(),
                    interface: text(),
                    member: text(),
                    error: text(),
                    reply_serial,
                    destination: text(),
                    sender: text(),
                    body,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_sent_is_understood_and_no_part_of_it_is_taken_for_all(
            message in message(),
            part in 0.0..1.0,
        ) {
            let bytes = message.encode();
            prop_assert_eq!(Message::length(&bytes), Some(bytes.len() as u64));
            prop_assert_eq!(Message::decode(&bytes), Some(message.clone()));
            let part = &bytes[..(bytes.len() as f64 * part) as usize];
            // A change of padding bytes has no effect.
            let decoded = Message::decode(part);
            prop_assert!(decoded.is_none() || decoded == Some(message));
        }

        #[test]
        fn nonsense_does_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200), ok in any::<bool>()) {
            if let Some(first) = bytes.first_mut().filter(|_| ok) {
                *first = b'l';
            }
            Message::length(&bytes);
            Message::decode(&bytes);
        }
    }

    #[test]
    fn a_message_whose_bytes_are_in_the_other_order_is_understood() {
        let bytes = [
            66, 1, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 39, 3, 1, 115, 0, 0, 0, 0, 4, 80, 105,
            110, 103, 0, 0, 0, 0, 7, 1, 115, 0, 0, 0, 0, 4, 58, 49, 46, 53, 0, 0, 0, 0, 8, 1, 103,
            0, 1, 117, 0, 0, 0, 0, 0, 42,
        ];
        let message = Message::decode(&bytes).unwrap();
        assert_eq!(Message::length(&bytes), Some(bytes.len() as u64));
        assert_eq!((message.serial, message.member.as_str()), (7, "Ping"));
        assert_eq!(message.sender, ":1.5");
        assert_eq!(message.body, Body::Number(42));
    }
}
