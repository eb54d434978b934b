use std::rc::Rc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::{
    Ledger, LedgerKind,
    events::Subscriber,
    frames::{self, ClientFrame, take_frame},
    http::{Request, write_json},
    responses::{self, Next},
};

const READ_SIZE: usize = 16 * 1024;

/// Serves requests until the client disconnects or opens a websocket, then events.
pub(super) async fn serve(stream: TcpStream, ledger: Rc<Ledger>) {
    let (mut reader, mut writer) = stream.into_split();
    let (mut input, mut output) = (Vec::with_capacity(READ_SIZE), Vec::with_capacity(READ_SIZE));
    loop {
        while let Some(request) = Request::parse(&input) {
            let next = ledger.respond(&request, &mut output);
            let length = request.length;
            input.drain(..length);
            if let Next::Events { service, last_seen } = next {
                if writer.write_all(&output).await.is_ok() {
                    serve_events(&ledger, reader, writer, input, &service, last_seen).await;
                }
                return;
            }
        }
        if !output.is_empty() {
            if writer.write_all(&output).await.is_err() {
                return;
            }
            output.clear();
        }
        if !read(&mut reader, &mut input).await {
            return;
        }
    }
}

async fn read(reader: &mut OwnedReadHalf, input: &mut Vec<u8>) -> bool {
    input.reserve(READ_SIZE);
    reader.read_buf(input).await.is_ok_and(|length| length > 0)
}

async fn serve_events(
    ledger: &Ledger,
    mut reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    mut input: Vec<u8>,
    service: &str,
    last_seen: Option<String>,
) {
    let writer = Subscriber::new(writer);
    if ledger.kind == LedgerKind::Scabbard {
        let state = ledger.state.borrow();
        for transaction in state.history(service, last_seen.as_deref()) {
            writer.send(&frames::text(&responses::scabbard_event(transaction)));
        }
    }
    let number = ledger.subscribers.borrow_mut().add(service, writer.clone());
    'open: loop {
        while let Some(frame) = take_frame(&mut input) {
            match frame {
                ClientFrame::Ping(payload) => writer.send(&frames::pong(&payload)),
                ClientFrame::Text => {
                    let block = responses::sawtooth_event(ledger.blocks.get());
                    writer.send(&frames::text(&block));
                }
                ClientFrame::Close => {
                    writer.send(&frames::close());
                    break 'open;
                }
                ClientFrame::Other => {}
            }
        }
        if !read(&mut reader, &mut input).await {
            break;
        }
    }
    ledger.subscribers.borrow_mut().remove(service, number);
}

impl Ledger {
    fn respond(&self, request: &Request<'_>, output: &mut Vec<u8>) -> Next {
        if let Some(path) = request.path.strip_prefix("/bench/") {
            write_json(output, "200 OK", &self.respond_to_bench(path));
            return Next::Request;
        }
        self.count(request);
        if self.is_busy.get() && request.is_post && request.path.ends_with("/batches") {
            responses::busy(output);
            return Next::Request;
        }
        match self.kind {
            LedgerKind::Scabbard => self.respond_as_scabbard(request, output),
            LedgerKind::Sawtooth => self.respond_as_sawtooth(request, output),
        }
    }

    fn count(&self, request: &Request<'_>) {
        for (endpoint, count) in ["/batches", "/batch_statuses"].iter().zip(&self.requests) {
            count.update(|count| count + usize::from(request.path.ends_with(endpoint)));
        }
    }

    fn respond_to_bench(&self, path: &str) -> String {
        let state = self.state.borrow();
        match path {
            "count" => return state.committed.to_string(),
            "requests" => return self.requests.each_ref().map(|it| it.get().to_string()).join(" "),
            "report" => return state.report(),
            _ => self.is_busy.set(path == "busy"),
        }
        String::new()
    }

    fn respond_as_scabbard(&self, request: &Request<'_>, output: &mut Vec<u8>) -> Next {
        // `/scabbard/CIRCUIT/SERVICE/ENDPOINT`
        let path = request.path.strip_prefix("/scabbard/").unwrap_or_default();
        let end_of_service = path.match_indices('/').nth(1).map_or(path.len(), |(at, _)| at);
        let (service, endpoint) = path.split_at(end_of_service);
        match endpoint.trim_start_matches('/') {
            "ws/subscribe" => return responses::open_websocket(request, service, output),
            "batches" => self.accept(Some(service), request),
            _ => {}
        }
        let endpoint = endpoint.trim_start_matches('/');
        responses::scabbard(&self.state.borrow(), endpoint, request, output);
        Next::Request
    }

    fn respond_as_sawtooth(&self, request: &Request<'_>, output: &mut Vec<u8>) -> Next {
        match (request.is_post, request.path) {
            (false, "/subscriptions") => return responses::open_websocket(request, "", output),
            (true, "/batches") => self.accept(None, request),
            _ => {}
        }
        responses::sawtooth(&self.state.borrow(), request, output);
        Next::Request
    }

    fn accept(&self, service: Option<&str>, request: &Request<'_>) {
        if self.state.borrow_mut().accept(service, request.body, self.delay) {
            self.arrived.notify_one();
        }
    }
}
