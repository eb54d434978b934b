"""Submits batches, waits for their ends, and follows events, over lost connections and restarts of the server."""

import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import httpx

from .api_client import AuthenticatedClient, Client
from .api_client.models import DetailsJson, EventJson, EventKindName
from .batches import SignedBatch, encode_batches

# How long one request waits for the end of a batch, and the pause if the server could not let it wait, in seconds.
_WAIT = 30
_SHORTEST_PAUSE = 0.2
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 15.0
# After this long without a byte a stream is lost: the server sends a comment every 15 seconds.
_SILENCE = 45


class GridBatchError(Exception):
    """The server has refused a request. `code` is the number of the error in the manual of the HTTP interface."""

    def __init__(self, response: httpx.Response):
        try:
            self.problem: dict[str, Any] = dict(response.json())
        except (ValueError, TypeError):
            self.problem = {}
        self.status = response.status_code
        self.code: int | None = self.problem.get("code")
        retry_after = response.headers.get("retry-after", "")
        self.retry_after = float(retry_after) if retry_after.isdecimal() else 0.0
        super().__init__(self.problem.get("detail") or f"the server answered with status {self.status}")

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (408, 429) or self.status >= 500


class PositionedEvent(NamedTuple):
    """An event, and the position after it: a program that stores both together misses none and sees none twice."""

    event: EventJson
    position: str


class GridBatch:
    """A server, by its URL. `http` is for all other requests, with the functions of `grid_batch_client.api_client`."""

    def __init__(self, url: str, token: str | None = None):
        timeout = httpx.Timeout(_WAIT + 15, connect=10)
        if httpx.URL(url).scheme not in ("http", "https"):
            raise ValueError(f"{url} is not http://HOST or https://HOST")
        url = url.rstrip("/")
        self.http = (
            Client(base_url=url, timeout=timeout)
            if token is None
            else AuthenticatedClient(base_url=url, timeout=timeout, token=token)
        )

    def submit(
        self,
        batches: Sequence[SignedBatch],
        *,
        service_id: str | None = None,
        label: str | None = None,
        timeout: float | None = None,
    ) -> list[str]:
        """Submits batches. All are stored once this returns.

        It repeats the request until then, for up to `timeout` seconds, which stores none twice.
        """
        answer = self._repeat(
            timeout,
            "POST",
            "/v1/batches",
            content=encode_batches(batches),
            headers={"content-type": "application/octet-stream"},
            params=_given(service_id=service_id, label=label),
        )
        return [batch["id"] for batch in answer["data"]]

    def wait(self, batch_id: str, *, service_id: str | None = None, timeout: float | None = None) -> DetailsJson:
        """Waits until a batch has ended: its `state` is then `committed` or `invalid`. Raises TimeoutError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            seconds = _WAIT if left is None else max(0, min(_WAIT, int(left)))
            params = _given(service_id=service_id, wait=seconds)
            batch = self._repeat(left, "GET", f"/v1/batches/{batch_id}", params=params)
            if batch["state"] in ("committed", "invalid"):
                return DetailsJson.from_dict(batch)
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"batch {batch_id} has not ended in {timeout} seconds")
            time.sleep(_SHORTEST_PAUSE)

    def events(
        self,
        *,
        after: str = "latest",
        service_id: str | None = None,
        kinds: Sequence[EventKindName | str] = (),
    ) -> Iterator[PositionedEvent]:
        """The events as they happen, after a position, `oldest` or `latest`, until the caller leaves the loop."""
        kind = ",".join(str(kind) for kind in kinds) or None
        retries = _Retries(None)
        while True:
            try:
                params = _given(after=after, service_id=service_id, kind=kind)
                for position, data in self._messages(params):
                    retries.reset()
                    after = position or after
                    if data is not None:
                        yield PositionedEvent(EventJson.from_dict(json.loads(data)), after)
                # The server ends a stream after some minutes.
                time.sleep(0.05)
            except (httpx.TransportError, GridBatchError) as error:
                retries.after(error)

    def _messages(self, params: dict[str, Any]) -> Iterator[tuple[str | None, str | None]]:
        headers = {"accept": "text/event-stream"}
        timeout = httpx.Timeout(10, read=_SILENCE)
        client = self.http.get_httpx_client()
        stream = client.stream("GET", "/v1/events/stream", params=params, headers=headers, timeout=timeout)
        with stream as response:
            if response.is_error:
                response.read()
                raise GridBatchError(response)
            message: dict[str, str] = {}
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if line:
                    message[name] = value
                else:
                    yield message.get("id"), message.get("data")
                    message = {}

    def _repeat(self, timeout: float | None, method: str, path: str, **request: Any) -> Any:
        """Repeats a request until it succeeds or is refused for good."""
        retries = _Retries(timeout)
        client = self.http.get_httpx_client()
        while True:
            try:
                response = client.request(method, path, **request)
                if response.is_error:
                    raise GridBatchError(response)
                return response.json()
            except (httpx.TransportError, GridBatchError) as error:
                retries.after(error)


class _Retries:
    """The pauses between attempts: each is twice as long as the last, with jitter, and at least what the server wants."""

    def __init__(self, timeout: float | None):
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.reset()

    def reset(self) -> None:
        """Begins with short pauses again."""
        self._pause = _FIRST_PAUSE

    def after(self, error: Exception) -> None:
        """Waits after a failure that may be temporary. Raises any other one, and the last one after the timeout."""
        wanted = error.retry_after if isinstance(error, GridBatchError) else 0.0
        is_temporary = not isinstance(error, GridBatchError) or error.is_temporary
        pause = max(wanted, self._pause * random.uniform(0.5, 1))
        if not is_temporary or (self._deadline is not None and time.monotonic() + pause >= self._deadline):
            raise error
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        time.sleep(pause)


def _given(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
