// The page: chooses a view by the address, keeps it current, and follows the events of the server.

import { element, replace } from "./dom.js";
import { Problem, follow, setToken, token } from "./server.js";
import { showSignIn } from "./sign_in.js";
import { explain } from "./verbs.js";
import { overview } from "./views/overview.js";
import { services, service } from "./views/services.js";
import { batches, batch } from "./views/batches.js";
import { held } from "./views/held.js";
import { transaction, transactions, withdrawal, withdrawals } from "./views/queued.js";
import { nodes } from "./views/nodes.js";
import { events } from "./views/events.js";

/** Name, title, the view, and the view of one thing. */
const VIEWS = [
  ["", "Overview", overview],
  ["services", "Services", services, service],
  ["batches", "Batches", batches, batch],
  ["held", "Held", held],
  ["withdrawals", "Withdrawals", withdrawals, withdrawal],
  ["transactions", "Transactions", transactions, transaction],
  ["nodes", "Nodes", nodes],
  ["events", "Events", events],
];
/** A view is read again after an event, but not more often, and without an event after so long. */
const SHORTEST_PAUSE = 1000;
const LONGEST_PAUSE = 5000;

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const signOut = document.getElementById("sign-out");

let current = null;
let following = null;

/** What the address names. */
function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  return { name, id: id === undefined ? undefined : decodeURIComponent(id), parameters: new URLSearchParams(query) };
}

function open() {
  const { name, id, parameters } = parse();
  const [, title, list, one] = VIEWS.find(([it]) => it === name) ?? VIEWS[0];
  current?.abort();
  current = new AbortController();
  const { signal } = current;
  for (const anchor of document.querySelectorAll("#views a")) {
    if (anchor.dataset.view === name) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  document.title = `${id ? `${id.slice(0, 12)} · ` : ""}${title} · grid-batch`;
  replace(main, element("p", { class: "muted" }, "Loading …"));
  const view = (id !== undefined && one ? one : list)({ main: element("div"), id, parameters, refresh });
  show(view, signal);
}

/** Reads the view, and again after events, until another one is opened. */
async function show(view, signal) {
  while (!signal.aborted) {
    try {
      await view.load();
      if (signal.aborted) return;
      if (!main.contains(view.main)) replace(main, view.main);
      signOut.hidden = !token();
      startFollowing();
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 401) {
        stopFollowing();
        showSignIn(main, token() ? explain(error) : null, start);
        return;
      }
      replace(main, element("h1", {}, "This view cannot be shown"), element("p", { class: "notice bad", role: "alert" }, explain(error)));
    }
    await pause(signal);
  }
}

const changes = new EventTarget();
let hasChanged = false;

/** Has the view read again soon. */
function refresh() {
  hasChanged = true;
  changes.dispatchEvent(new Event("change"));
}

/** Until the view is to be read again. A page that is not seen is not read. */
async function pause(signal) {
  await sleep(SHORTEST_PAUSE, signal);
  if (!hasChanged) await sleep(LONGEST_PAUSE - SHORTEST_PAUSE, signal, changes);
  while (document.hidden && !signal.aborted) await sleep(SHORTEST_PAUSE, signal);
  hasChanged = false;
}

/** Waits, but not after the signal, or a change if one counts. */
function sleep(milliseconds, signal, changes) {
  return new Promise((resume) => {
    setTimeout(resume, milliseconds);
    signal.addEventListener("abort", resume, { once: true });
    changes?.addEventListener("change", resume, { once: true });
  });
}

function onEvent(event) {
  document.dispatchEvent(new CustomEvent("batch-event", { detail: event }));
  refresh();
}

function onConnected(isConnected) {
  connection.textContent = isConnected ? "live" : "no live events, read every 5 s";
  connection.className = isConnected ? "good" : "warning";
}

function startFollowing() {
  if (following) return;
  following = new AbortController();
  follow(onEvent, onConnected, following.signal);
}

function stopFollowing() {
  following?.abort();
  following = null;
}

function start() {
  stopFollowing();
  open();
}

document.getElementById("views").append(...VIEWS.map(([name, title]) =>
  element("a", { href: `#/${name}`, "data-view": name }, title)));
signOut.addEventListener("click", () => { setToken(null); start(); });
addEventListener("hashchange", () => { open(); main.focus(); });
start();
