//! Event websockets of any kind of ledger.

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
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

use crate::{
    Fault,
    common_state::CommonState,
    events::{CommitEvent, EventFrames, EventsOf, Subscription},
    request::SimRequest,
    resettable_stream::ResetFlag,
    response::SimResponse,
    sim_context::{ConnectionReset, SimContext},
};

const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Clients send little more than pings. The buffer is cleared before each read.
const READ_BUFFER: usize = 1 << 10;

type ServerWebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The response that opens a websocket, if the client requests one.
pub(crate) fn handshake(request: &SimRequest, subscription: Subscription) -> Option<SimResponse> {
    let upgrade = request.header("upgrade").filter(|to| to.eq_ignore_ascii_case("websocket"));
    let key = request.header("sec-websocket-key");
    let (_, key) = upgrade.zip(key)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
    let mut response = SimResponse::empty(StatusCode::SWITCHING_PROTOCOLS)
        .with_header(CONNECTION, "Upgrade")
        .with_header(UPGRADE, "websocket")
        .with_value(SEC_WEBSOCKET_ACCEPT, accept);
    response.subscription = Some(Box::new(subscription));
    Some(response)
}

/// The reason why a websocket ends.
enum WebSocketEnd {
    /// The client has disconnected.
    Disconnected,
    /// The connection must be reset.
    Reset,
}

impl From<ConnectionReset> for WebSocketEnd {
    fn from(_: ConnectionReset) -> Self {
        Self::Reset
    }
}

/// Sends events until the client disconnects or the connection is reset.
pub(crate) async fn run(
    context: &SimContext,
    boot: u64,
    upgrade: OnUpgrade,
    reset_flag: ResetFlag,
    subscription: Subscription,
) {
    let Ok(upgraded) = upgrade.await else { return };
    let io = TokioIo::new(upgraded);
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let mut client = EventClient {
        socket,
        count: context.state().common.events.count(&subscription.of),
        of: subscription.of,
        next: subscription.next,
        feed: subscription.feed,
        context,
        boot,
        crashes: context.crashes(),
        is_closed: false,
    };
    context.state().common.events.websocket_counts().open += 1;
    let end = client.run(subscription.backlog).await;
    let mut state = context.state();
    let common = &mut state.common;
    common.events.websocket_counts().open -= 1;
    match end {
        Err(WebSocketEnd::Reset) => reset_flag.set(),
        _ if client.is_closed => common.events.websocket_counts().closed += 1,
        _ => client_disappeared(common, &*client.feed),
    }
}

fn client_disappeared(common: &mut CommonState, feed: &dyn EventFrames) {
    common.events.websocket_counts().broken += 1;
    if feed.may_end_with_client() && common.faults.occurs(Fault::EventsEndWithClient) {
        common.events.stop_sending();
    }
}

/// A client of an event websocket.
struct EventClient<'a> {
    context: &'a SimContext,
    boot: u64,
    /// The crashes of the validator that were reported to the client.
    crashes: u64,
    socket: ServerWebSocket,
    count: watch::Receiver<usize>,
    of: EventsOf,
    next: usize,
    feed: Box<dyn EventFrames>,
    /// The client has sent a Close frame.
    is_closed: bool,
}

/// The next thing to do.
enum Activity {
    SendPing,
    Receive(Message),
    SendEvent,
    /// The validator has crashed this many times.
    Crashed(u64),
}

impl EventClient<'_> {
    async fn run(&mut self, backlog: Vec<String>) -> Result<(), WebSocketEnd> {
        let mut ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        let delay = self.context.delay(Fault::LateReplay(Duration::ZERO));
        self.context.sleep(self.boot, delay).await?;
        self.send(backlog).await?;
        loop {
            match self.next_activity(&mut ping).await? {
                Activity::SendPing => self.send_message(Message::Ping(Bytes::new())).await?,
                Activity::Receive(message) => self.receive(message).await?,
                Activity::SendEvent => self.send_next_event().await?,
                Activity::Crashed(crashes) => {
                    self.crashes = crashes;
                    self.send(self.feed.disconnected()).await?;
                }
            }
        }
    }

    async fn next_activity(&mut self, ping: &mut Interval) -> Result<Activity, WebSocketEnd> {
        let next = self.next;
        select! {
            reset = self.context.wait_for_restart(self.boot) => Err(reset.into()),
            crashes = self.context.wait_for_crash(self.crashes) => Ok(Activity::Crashed(crashes)),
            _ = ping.tick() => Ok(Activity::SendPing),
            received = self.socket.next() => match received {
                Some(Ok(message)) => Ok(Activity::Receive(message)),
                Some(Err(_)) | None => Err(WebSocketEnd::Disconnected),
            },
            count = self.count.wait_for(|count| *count > next) => match count {
                Ok(_) => Ok(Activity::SendEvent),
                Err(_) => Err(WebSocketEnd::Disconnected),
            },
        }
    }

    async fn receive(&mut self, message: Message) -> Result<(), WebSocketEnd> {
        self.is_closed |= message.is_close();
        let Message::Text(text) = message else { return Ok(()) };
        let frames = self.feed.receive(&text, &self.context.state().common.events);
        self.send(frames).await
    }

    async fn send_next_event(&mut self) -> Result<(), WebSocketEnd> {
        let event = self.next_event()?;
        let frames = event.map_or(Vec::new(), |event| self.feed.frames(self.next, &event));
        self.next += 1;
        if frames.is_empty() {
            return Ok(());
        }
        let delay = self.context.delay(Fault::LateEvents(Duration::ZERO));
        self.context.sleep(self.boot, delay).await?;
        if self.context.occurs(Fault::EventsBroken) {
            return Err(WebSocketEnd::Reset);
        }
        self.send(frames).await
    }

    /// The next event, unless the ledger has restarted: a restart may also resume events.
    fn next_event(&self) -> Result<Option<CommitEvent>, WebSocketEnd> {
        let state = self.context.state();
        if self.context.boot() != self.boot {
            return Err(WebSocketEnd::Reset);
        }
        Ok(state.common.events.get(&self.of, self.next).cloned())
    }

    async fn send(&mut self, frames: Vec<String>) -> Result<(), WebSocketEnd> {
        for frame in frames {
            self.send_message(Message::text(frame)).await?;
        }
        Ok(())
    }

    async fn send_message(&mut self, message: Message) -> Result<(), WebSocketEnd> {
        self.socket.send(message).await.map_err(|_| WebSocketEnd::Disconnected)
    }
}
