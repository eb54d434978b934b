use crate::http::refusals;

refusals! {
    /// Events cannot be read.
    pub(crate) enum EventRequestError {
        #[error("{0}")]
        [BAD_REQUEST, 1080, "Invalid Cursor"]
        InvalidEventCursor(String),
        #[error(
            "events after this cursor are not kept any more, or the database went back to an earlier state; the \
             link begins with the oldest events"
        )]
        [GONE, 1081, "Events Removed"]
        EventsRemoved { link: String },
    }
    impl {
        fn link(&self) -> Option<&str> {
            if let Self::EventsRemoved { link } = self { Some(link) } else { None }
        }
    }
}
