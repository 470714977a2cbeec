//! Desktops that run scripts of their users. A script calls `org.frontrow.Foreground1` on the
//! session's D-Bus when a window gets the focus. KDE's compositor has such scripts, which can reach
//! only that bus.

use crate::dbus::{Body, Offer, Service};
use crate::focus::{Error, Event, Focus, Screen, Source};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

const OFFER: Offer = Offer {
    name: "org.frontrow.Foreground1",
    methods: r#"<method name="SetForeground"><arg name="pid" type="s" direction="in"/></method>
"#,
};

/// A service on the session's D-Bus.
#[derive(Debug)]
pub struct Calls {
    service: Service,
    focus: Focus,
}

impl Calls {
    /// Requests the name on the bus that DBUS_SESSION_BUS_ADDRESS names.
    ///
    /// # Errors
    /// [`Error::NoBus`].
    pub fn connect() -> Result<Self, Error> {
        let address = std::env::var("DBUS_SESSION_BUS_ADDRESS").unwrap_or_default();
        let path = socket(&address).ok_or_else(|| Error::NoBus("it names no socket".to_owned()))?;
        Self::connect_to(&path)
    }

    /// As [`Calls::connect`], on the bus at `socket`.
    ///
    /// # Errors
    /// As [`Calls::connect`].
    pub fn connect_to(socket: &Path) -> Result<Self, Error> {
        let service = Service::connect(socket, OFFER).map_err(|it| Error::NoBus(it.to_string()))?;
        let service = service.ok_or_else(|| Error::NoBus("nobody is there".to_owned()))?;
        Ok(Calls {
            service,
            focus: Focus::Nobody,
        })
    }

    /// Takes all calls; whether the focus was set.
    fn hear(&mut self) -> std::io::Result<bool> {
        let mut news = false;
        for call in self.service.messages()? {
            let pid = match (call.member.as_str(), &call.body) {
                ("SetForeground", Body::Text(pid)) => pid.parse().ok(),
                ("SetForeground", Body::Number(pid)) => Some(*pid),
                _ => None,
            };
            match pid {
                Some(pid) => {
                    self.focus = Focus::Process(pid);
                    news = true;
                    self.service.answer(&call, Body::Empty)?;
                }
                None if call.kind == crate::dbus::Kind::Call => self.service.unknown(&call)?,
                // The message is a greeting of the bus.
                None => {}
            }
        }
        Ok(news)
    }
}

impl Source for Calls {
    fn now(&mut self) -> Result<Screen, Error> {
        Ok(Screen {
            focus: self.focus.clone(),
            beside: Vec::new(),
        })
    }

    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<Event, Error> {
        loop {
            let fds = [stop, self.service.fd()];
            let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut fds, None) {
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Event::Stop),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if self
                .hear()
                .map_err(|error| Error::Lost(error.to_string()))?
            {
                return self.now().map(Event::Screen);
            }
        }
    }
}

/// The first path in an address such as `unix:path=/run/user/1000/bus,guid=…;…`.
fn socket(address: &str) -> Option<PathBuf> {
    let mut unix = address.split(';').filter_map(|it| it.strip_prefix("unix:"));
    let path = unix.find_map(|it| it.split(',').find_map(|it| it.strip_prefix("path=")));
    path.map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_where_its_address_says() {
        for (address, path) in [
            ("unix:path=/run/user/1000/bus", Some("/run/user/1000/bus")),
            ("unix:path=/run/bus,guid=7", Some("/run/bus")),
            ("tcp:host=x,port=1;unix:guid=7,path=/b", Some("/b")),
            ("unix:abstract=/tmp/dbus-x", None),
            ("", None),
        ] {
            assert_eq!(socket(address).as_deref(), path.map(Path::new), "{address}");
        }
    }
}
