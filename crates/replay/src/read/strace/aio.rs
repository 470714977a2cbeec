//! The requests of an io_submit(2), as strace prints them:
//!
//! ```text
//! [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_buf="…", aio_nbytes=4096, aio_offset=0}]
//! ```
//!
//! Versions before 5 print `[{pwrite, fildes=3, str="…", nbytes=4096, offset=0}]`.

use super::call::{number_in, parts};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Read,
    Write,
    Sync,
    DataSync,
}

/// One request: its descriptor is an argument as those of calls are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) order: Order,
    pub(super) descriptor: &'a str,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The requests in an argument, in their order; None for one that strace does not show whole.
pub(super) fn requests(argument: &str) -> Vec<Option<Request<'_>>> {
    let Some(inner) = argument.strip_prefix('[') else {
        return Vec::new();
    };
    let Ok((items, _)) = parts(inner, b']') else {
        return Vec::new();
    };
    items.into_iter().map(request).collect()
}

fn request(item: &str) -> Option<Request<'_>> {
    let (fields, _) = parts(item.strip_prefix('{')?, b'}').ok()?;
    let value = |name: &str| {
        fields.iter().find_map(|field| {
            let (key, value) = field.split_once(['=', ':'])?;
            let key = key.strip_prefix("aio_").unwrap_or(key);
            (key == name || key == "filedes" && name == "fildes").then_some(value)
        })
    };
    let order =
        value("lio_opcode").or_else(|| fields.iter().copied().find(|it| order(it).is_some()));
    let order = self::order(order?)?;
    let descriptor = value("fildes")?;
    if matches!(order, Order::Sync | Order::DataSync) {
        return Some(Request {
            order,
            descriptor,
            offset: 0,
            bytes: 0,
        });
    }
    let bytes = match value("nbytes") {
        Some(bytes) => number_in(bytes)?,
        None => vector_bytes(value("buf").or_else(|| value("iovec"))?)?,
    };
    Some(Request {
        order,
        descriptor,
        offset: number_in(value("offset")?)?,
        bytes,
    })
}

fn order(word: &str) -> Option<Order> {
    let word = word.strip_prefix("IOCB_CMD_").unwrap_or(word);
    let is = |words: &[&str]| words.iter().any(|it| word.eq_ignore_ascii_case(it));
    Some(match () {
        () if is(&["pread", "preadv"]) => Order::Read,
        () if is(&["pwrite", "pwritev"]) => Order::Write,
        () if is(&["fsync"]) => Order::Sync,
        () if is(&["fdsync"]) => Order::DataSync,
        () => return None,
    })
}

/// Sum of the lengths in `[{iov_base="…", iov_len=512}, …]`.
fn vector_bytes(text: &str) -> Option<u64> {
    let (items, _) = parts(text.strip_prefix('[')?, b']').ok()?;
    let mut sum: u64 = 0;
    for item in items {
        let (fields, _) = parts(item.strip_prefix('{')?, b'}').ok()?;
        let length = fields.iter().find_map(|it| it.strip_prefix("iov_len="))?;
        sum = sum.checked_add(number_in(length)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_old_and_new_versions_print() {
        let wanted = |order, descriptor, offset, bytes| {
            Some(Request {
                order,
                descriptor,
                offset,
                bytes,
            })
        };
        let new = requests(
            "[{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</a,}>, aio_buf=\"}]\", aio_nbytes=4096, aio_offset=8192}, \
             {aio_lio_opcode=IOCB_CMD_PREADV, aio_fildes=3, aio_buf=[{iov_base=\"\", iov_len=512}, {iov_base=\"\", iov_len=512}], aio_offset=0}, \
             {aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=3}, {aio_lio_opcode=IOCB_CMD_POLL, aio_fildes=3}, ...]",
        );
        assert_eq!(
            new,
            [
                wanted(Order::Write, "3</a,}>", 8192, 4096),
                wanted(Order::Read, "3", 0, 1024),
                wanted(Order::DataSync, "3", 0, 0),
                None,
                None,
            ]
        );
        let old = requests("[{pwrite, filedes:5, buf:0x7f, nbytes:512, offset:1024}]");
        assert_eq!(old, [wanted(Order::Write, "5", 1024, 512)]);
        let middle = requests("[{data=0, pread, fildes=5, str=\"a\", nbytes=512, offset=0}]");
        assert_eq!(middle, [wanted(Order::Read, "5", 0, 512)]);
        assert_eq!(requests("0x7ffd"), []);
    }
}
