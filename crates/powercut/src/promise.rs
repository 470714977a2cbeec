//! The contents that each page may have after a power cut.
//!
//! A FLUSH makes all commands durable that ended before it was sent; FUA makes its own write
//! durable. A page may have its last durable content, or one that was sent later, but no older one.
//!
//! A discard is durable only when its page is written again. Until then it may be undone, and a
//! FLUSH does not cover writes before it (as in `kernel/simflash/test/mirror.c`).

use crate::stream::{Stream, What};
use crate::timeline::{NEVER, Step, Timeline};

#[derive(Clone, Copy, Debug)]
struct Version {
    /// Index in [`Stream::pages`].
    page: u32,
    submitted: Step,
    completed: Step,
    /// The version is durable from this step's end on, or [`NEVER`].
    certain: Step,
    discard: bool,
}

/// For each page of the device all versions that it ever had, in order.
pub struct Promise {
    versions: Vec<Vec<Version>>,
}

/// A moment in a stream, at which the power is cut.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Last step whose submitted records were sent.
    pub sent: Step,
    /// First step whose ended records were not acknowledged.
    pub acknowledged: Step,
}

impl Promise {
    /// The promise of a stream that was played.
    pub fn of(stream: &Stream, timeline: &Timeline) -> Self {
        let flushes = Flushes::of(stream, timeline);
        let mut versions = vec![Vec::new(); stream.config.capacity_pages() as usize];
        for (number, record) in stream.records.iter().enumerate() {
            let version = |page, fua: bool, discard| {
                let completed = timeline.completed[number];
                Version {
                    page,
                    submitted: timeline.submitted[number],
                    completed,
                    certain: match (discard, fua) {
                        (true, _) => NEVER,
                        (false, true) => completed,
                        (false, false) => flushes.after(completed),
                    },
                    discard,
                }
            };
            match &record.what {
                What::Write {
                    lba, pages, fua, ..
                } => {
                    for (at, page) in (*lba as usize..).zip(pages) {
                        versions[at].push(version(*page, *fua, false));
                    }
                }
                What::Discard(lba, pages) => {
                    for at in *lba..lba + pages {
                        versions[at as usize].push(version(0, false, true));
                    }
                }
                _ => {}
            }
        }
        for page in &mut versions {
            forget_flushes_behind_discards(page);
        }
        Promise { versions }
    }

    /// Number of the first page with a content that it may not have; None if there is none. `words`
    /// has the contents of all pages, as numbers of the stream's pages.
    pub fn broken(&self, moment: Moment, words: &[u64]) -> Option<u32> {
        let pages = self.versions.iter().zip(words);
        pages
            .enumerate()
            .find(|(_, (versions, word))| !may_hold(versions, moment, **word))
            .map(|(lba, _)| lba as u32)
    }
}

/// Withdraws the durability of versions that were discarded before their FLUSH ended.
fn forget_flushes_behind_discards(versions: &mut [Version]) {
    let mut discarded = NEVER;
    for version in versions.iter_mut().rev() {
        if version.discard {
            discarded = version.submitted;
        } else if version.certain > version.completed && version.certain >= discarded {
            version.certain = NEVER;
        }
    }
}

fn may_hold(versions: &[Version], moment: Moment, word: u64) -> bool {
    let sent = &versions[..versions.partition_point(|it| it.submitted <= moment.sent)];
    let base = sent.iter().rposition(|it| it.certain < moment.acknowledged);
    let Some(base) = base else {
        return word == 0 || sent.iter().any(|it| u64::from(it.page) == word);
    };
    let since = sent[base].submitted;
    sent.iter()
        .enumerate()
        .any(|(at, it)| u64::from(it.page) == word && (at >= base || it.completed >= since))
}

/// Steps in which FLUSHes were sent, and the first end of one that was sent then or later.
struct Flushes {
    ends: Vec<(Step, Step)>,
}

impl Flushes {
    fn of(stream: &Stream, timeline: &Timeline) -> Self {
        let mut ends: Vec<(Step, Step)> = stream
            .records
            .iter()
            .enumerate()
            .filter(|(_, record)| record.what == What::Flush)
            .map(|(number, _)| (timeline.submitted[number], timeline.completed[number]))
            .collect();
        let mut first = NEVER;
        for (_, ended) in ends.iter_mut().rev() {
            first = first.min(*ended);
            *ended = first;
        }
        Flushes { ends }
    }

    /// Step in which the first FLUSH ended that was sent after `step`.
    fn after(&self, step: Step) -> Step {
        let index = self.ends.partition_point(|(sent, _)| *sent <= step);
        self.ends.get(index).map_or(NEVER, |(_, ended)| *ended)
    }
}

#[cfg(test)]
mod tests;
