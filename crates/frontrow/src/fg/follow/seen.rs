//! The screen, and the units that its windows were taken for.

use foreground::focus::{Focus, Screen};
use foreground::{Cgroup, Finder, Found, Order, Visible, Window};

/// A window and its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub window: Window,
    pub found: Found,
}

/// All that is seen at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Name of the way in which it is known.
    pub by: &'static str,
    pub focus: Focused,
    /// Other visible windows, and their part of the screen in per cent.
    pub beside: Vec<(Taken, u8)>,
}

/// The focus, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focused {
    /// This window has it.
    Window(Taken),
    /// The desktop has it, so that no app is foreground.
    Desktop,
    /// Nobody has it, as between two windows. The last app stays the foreground.
    Nobody,
}

impl Seen {
    pub fn new(by: &'static str, finder: &Finder<'_>, screen: Screen) -> Self {
        let taken = |window: Window| Taken {
            found: finder.find(&window),
            window,
        };
        let beside = screen.beside.into_iter();
        Seen {
            by,
            focus: match screen.focus {
                Focus::Window(window) => Focused::Window(taken(window)),
                Focus::Desktop => Focused::Desktop,
                Focus::Nobody => Focused::Nobody,
            },
            beside: beside.map(|it| (taken(it.window), it.percent)).collect(),
        }
    }

    /// Whether an app has the focus.
    pub fn has_units(&self) -> bool {
        matches!(&self.focus, Focused::Window(taken) if !taken.found.units.is_empty())
    }

    /// The order to give, or `None` if no app is foreground; the outer `None` if all stays as it is.
    pub fn order(&self) -> Option<Option<Order>> {
        let foreground = match &self.focus {
            Focused::Nobody => return None,
            Focused::Desktop => return Some(None),
            Focused::Window(taken) if taken.found.units.is_empty() => return Some(None),
            Focused::Window(taken) => taken.found.units.clone(),
        };
        let visible = self.visible(&foreground);
        Some(Some(Order {
            foreground,
            visible,
            background: Vec::new(),
        }))
    }

    fn visible(&self, foreground: &[Cgroup]) -> Vec<Visible> {
        let mut visible: Vec<Visible> = Vec::new();
        for (taken, percent) in &self.beside {
            for cgroup in &taken.found.units {
                match visible.iter_mut().find(|it| it.cgroup == *cgroup) {
                    _ if foreground.contains(cgroup) => {}
                    Some(known) => known.percent = (known.percent + percent).min(100),
                    None => visible.push(Visible {
                        cgroup: cgroup.clone(),
                        percent: *percent,
                    }),
                }
            }
        }
        visible
    }
}
