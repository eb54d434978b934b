//! Event sockets, whatever they tell.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::{
    StatusCode,
    header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE},
    upgrade::{OnUpgrade, Upgraded},
};
use hyper_util::rt::TokioIo;
use tokio::{
    select,
    sync::watch,
    time::{Instant, Interval, interval_at},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, handshake::derive_accept_key, protocol::Role},
};

use crate::{
    Fault,
    answer::Answer,
    ask::Ask,
    events::{Feed, Subscription},
    shared::{Reset, Shared},
    wire::Fate,
};

const PING_INTERVAL: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The answer that opens a socket, if that is what the client asks for.
pub(crate) fn handshake(ask: &Ask, subscription: Subscription) -> Option<Answer> {
    let upgrade = ask.header("upgrade").filter(|to| to.eq_ignore_ascii_case("websocket"));
    let key = ask.header("sec-websocket-key");
    let (_, key) = upgrade.zip(key)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
    let mut answer = Answer::empty(StatusCode::SWITCHING_PROTOCOLS)
        .with_header(CONNECTION, "Upgrade")
        .with_header(UPGRADE, "websocket")
        .with_value(SEC_WEBSOCKET_ACCEPT, accept);
    answer.subscription = Some(Box::new(subscription));
    Some(answer)
}

/// Why a socket ends.
enum End {
    /// The client is gone.
    Gone,
    Reset,
}

impl From<Reset> for End {
    fn from(_: Reset) -> Self {
        Self::Reset
    }
}

/// Tells a client of events until one of the two is gone.
pub(crate) async fn run(
    shared: &Shared,
    life: u64,
    upgrade: OnUpgrade,
    fate: Fate,
    subscription: Subscription,
) {
    let Ok(upgraded) = upgrade.await else { return };
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let mut client = Client {
        socket,
        count: shared.world().common.events.count(),
        next: subscription.next,
        feed: subscription.feed,
        shared,
        life,
    };
    if let Err(End::Reset) = client.tell(subscription.backlog).await {
        fate.reset();
    }
}

/// A client that listens.
struct Client<'a> {
    shared: &'a Shared,
    life: u64,
    socket: Socket,
    count: watch::Receiver<usize>,
    next: usize,
    feed: Box<dyn Feed>,
}

/// What comes next.
enum Turn {
    Ping,
    Said(Message),
    Event,
}

impl Client<'_> {
    async fn tell(&mut self, backlog: Vec<String>) -> Result<(), End> {
        let mut ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        self.send(backlog).await?;
        loop {
            match self.turn(&mut ping).await? {
                Turn::Ping => self.send_message(Message::Ping(Bytes::new())).await?,
                Turn::Said(message) => self.hear(message).await?,
                Turn::Event => self.tell_next().await?,
            }
        }
    }

    async fn turn(&mut self, ping: &mut Interval) -> Result<Turn, End> {
        let next = self.next;
        select! {
            reset = self.shared.end_of(self.life) => Err(reset.into()),
            _ = ping.tick() => Ok(Turn::Ping),
            said = self.socket.next() => match said {
                Some(Ok(message)) => Ok(Turn::Said(message)),
                Some(Err(_)) | None => Err(End::Gone),
            },
            count = self.count.wait_for(|count| *count > next) => match count {
                Ok(_) => Ok(Turn::Event),
                Err(_) => Err(End::Gone),
            },
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        let Message::Text(text) = message else { return Ok(()) };
        let frames = self.feed.hear(&text, &self.shared.world().common.events);
        self.send(frames).await
    }

    async fn tell_next(&mut self) -> Result<(), End> {
        let event = self.shared.world().common.events.all().get(self.next).cloned();
        let frames = event.map_or(Vec::new(), |event| self.feed.frames(self.next, &event));
        self.next += 1;
        if frames.is_empty() {
            return Ok(());
        }
        let delay = self.shared.delay(Fault::LateEvents(Duration::ZERO));
        self.shared.pause(self.life, delay).await?;
        if self.shared.strikes(Fault::EventsBroken) {
            return Err(End::Reset);
        }
        self.send(frames).await
    }

    async fn send(&mut self, frames: Vec<String>) -> Result<(), End> {
        for frame in frames {
            self.send_message(Message::text(frame)).await?;
        }
        Ok(())
    }

    async fn send_message(&mut self, message: Message) -> Result<(), End> {
        self.socket.send(message).await.map_err(|_| End::Gone)
    }
}
