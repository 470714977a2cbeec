//! What each page may hold after a power cut.
//!
//! A FLUSH makes certain what ended before it was sent, a write with FUA what it wrote. What is
//! certain, and whatever was sent since, may be there; nothing older. A discard is certain only
//! when its page is written again: until then it may be undone, and a FLUSH says nothing about
//! what was written before it (as `kernel/simflash/test/mirror.c` has it).

use crate::stream::{Stream, What};
use crate::timeline::{NEVER, Step, Timeline};

#[derive(Clone, Copy, Debug)]
struct Version {
    /// Of [`Stream::pages`].
    page: u32,
    submitted: Step,
    completed: Step,
    /// From this step's end on it is certain, if ever.
    certain: Step,
    discard: bool,
}

/// For each page of the device all that it ever had, in order.
pub struct Promise {
    versions: Vec<Vec<Version>>,
}

/// A moment in a stream.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Records that were submitted in this step or before have been sent.
    pub sent: Step,
    /// Those that ended before this step have been acknowledged.
    pub acknowledged: Step,
}

impl Promise {
    /// Of a stream that was played.
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
                What::Write { lba, pages, fua } => {
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

    /// The first page that holds what it may not, of what all hold, by number.
    pub fn broken(&self, moment: Moment, words: &[u64]) -> Option<u32> {
        let pages = self.versions.iter().zip(words);
        pages
            .enumerate()
            .find(|(_, (versions, word))| !may_hold(versions, moment, **word))
            .map(|(lba, _)| lba as u32)
    }
}

/// A page that was discarded before the FLUSH that would have made it certain ended.
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

/// When FLUSHes were sent, and when the first of those sent then or later ended.
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

    /// When the first FLUSH ended that was sent after `step`.
    fn after(&self, step: Step) -> Step {
        let index = self.ends.partition_point(|(sent, _)| *sent <= step);
        self.ends.get(index).map_or(NEVER, |(_, ended)| *ended)
    }
}

#[cfg(test)]
mod tests;
