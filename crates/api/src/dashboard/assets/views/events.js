// What happens, while it happens.

import { batchLink, button, contains, element, replace, serviceLink, state, table } from "../dom.js";
import { get } from "../server.js";

const MOST = 200;

export function events({ main }) {
  let shown = [];
  let stopped = false;
  let filter = "";
  let isRead = false;
  const list = element("div");
  const toggle = button("Stop", "stop", () => {
    stopped = !stopped;
    toggle.textContent = stopped ? "Continue" : "Stop";
    show();
  });
  const show = () => {
    const matching = shown.filter((it) => contains(filter, it.service_id, it.batch_id, it.kind.replaceAll("_", " "), it.state.replaceAll("_", " "), it.detail));
    replace(list, table("Events, the latest first", [
      { name: "Time", cell: (it) => it.at.replace("T", " ").replace(/(\.\d{3})\d*Z/, "$1") },
      { name: "Event", cell: (it) => it.kind.replaceAll("_", " ") },
      { name: "State", cell: (it) => state(it.state) },
      { name: "Batch", cell: (it) => batchLink(it.batch_id, it.service_id) },
      { name: "Service", cell: (it) => serviceLink(it.service_id) },
      { name: "Detail", text: true, cell: (it) => it.detail ?? "" },
    ], matching, "No event yet. Submit a batch, and its events appear here."));
  };
  const add = (event) => {
    if (!document.contains(list)) return document.removeEventListener("batch-event", listen);
    if (stopped || shown.some((it) => it.id === event.id)) return;
    shown = [event, ...shown].slice(0, MOST);
  };
  const listen = ({ detail }) => add(detail);
  main.append(
    element("h1", {}, "Events"),
    element("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      element("label", {}, "Contains", element("input", { type: "search", oninput: (event) => { filter = event.target.value; show(); } })),
      toggle),
    list);
  const load = async () => {
    if (!isRead) {
      isRead = true;
      document.addEventListener("batch-event", listen);
      shown = await latest();
    }
    if (!stopped) show();
  };
  return { main, load };
}

/** The latest events that a few pages of batches have: the feed itself begins at the oldest. */
async function latest() {
  const page = await get("/v1/batches", { limit: 10 });
  const found = await Promise.all(page.data.map((it) => get(`/v1/batches/${it.id}`, { service_id: it.service_id })));
  const entries = found.flatMap((it) => it.history.map((event) => ({ ...event, service_id: it.service_id, batch_id: it.id, id: `${it.id} ${event.at} ${event.kind}` })));
  return entries.sort((a, b) => b.at.localeCompare(a.at)).slice(0, MOST);
}
