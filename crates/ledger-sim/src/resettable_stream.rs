use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A connection that can be told to end with a reset instead of politely.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    fate: Fate,
}

/// How a [`Wire`] ends, said by whoever knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fate(Arc<AtomicBool>);

impl Fate {
    pub(crate) fn reset(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, fate: Fate) -> Self {
        Self { stream, fate }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A socket that does not linger is reset when it is closed. Where that cannot be set, the
        // connection ends without an answer, which is as good.
        if self.fate.0.load(Ordering::Relaxed) {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
