//! The files of the page.

/// A file of the page.
#[derive(Debug)]
pub(super) struct File {
    /// Its path below the page.
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! files {
    ($($name:literal)*) => {
        &[$(File { name: $name, text: include_str!(concat!("assets/", $name)) }),*]
    };
}

pub(super) const FILES: &[File] = files! {
    "index.html"
    "style.css"
    "icon.svg"
    "access.js"
    "app.js"
    "chart.js"
    "coins.js"
    "dom.js"
    "many.js"
    "server.js"
    "sign_in.js"
    "verbs.js"
    "views/batch.js"
    "views/batches.js"
    "views/content.js"
    "views/events.js"
    "views/filters.js"
    "views/find.js"
    "views/gas.js"
    "views/held.js"
    "views/log.js"
    "views/nodes.js"
    "views/overview.js"
    "views/queued.js"
    "views/services.js"
    "views/webhooks.js"
};

impl File {
    pub(super) fn content_type(&self) -> &'static str {
        match self.name.rsplit_once('.') {
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }
}

pub(super) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}
