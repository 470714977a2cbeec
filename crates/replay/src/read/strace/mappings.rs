//! Files that a process has mapped so that stores reach them: msync(2) names them by address.

use std::collections::BTreeMap;

/// A shared mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    end: u64,
    /// Index of the open file description.
    description: usize,
}

/// Shared mappings of a process, by their first address.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings(BTreeMap<u64, Mapping>);

impl Mappings {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn map(&mut self, begin: u64, bytes: u64, description: usize) {
        let end = begin.saturating_add(bytes);
        self.unmap(begin, bytes);
        self.0.insert(begin, Mapping { end, description });
    }

    /// Removes what is mapped in a range; what is left of a mapping on either side stays.
    pub(super) fn unmap(&mut self, begin: u64, bytes: u64) {
        let end = begin.saturating_add(bytes);
        let within: Vec<u64> = self
            .0
            .range(..end)
            .filter(|(_, it)| it.end > begin)
            .map(|(at, _)| *at)
            .collect();
        for at in within {
            let Some(old) = self.0.remove(&at) else {
                continue;
            };
            if at < begin {
                self.0.insert(at, Mapping { end: begin, ..old });
            }
            if old.end > end {
                self.0.insert(end, old);
            }
        }
    }

    /// The description whose file is mapped at an address.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        let (_, mapping) = self.0.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping.description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_leaves_both_sides() {
        let mut mappings = Mappings::default();
        mappings.map(0x1000, 0x5000, 7);
        mappings.unmap(0x2000, 0x1000);
        mappings.map(0x4000, 0x1000, 8);
        let at = [0x1000, 0x1fff, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000];
        assert_eq!(
            at.map(|it| mappings.at(it)),
            [Some(7), Some(7), None, Some(7), Some(8), Some(7), None]
        );
    }
}
