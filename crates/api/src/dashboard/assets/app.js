// The page: chooses a view by the address, keeps it current, and follows the events of the server.

import { forgetAccess, mayForSome, may, readAccess, serves } from "./access.js";
import { clock, duration, element, replace, route } from "./dom.js";
import { Problem, follow, setToken, token } from "./server.js";
import { showSignIn } from "./sign_in.js";
import { explain } from "./verbs.js";
import { overview } from "./views/overview.js";
import { services, service } from "./views/services.js";
import { batches } from "./views/batches.js";
import { batch } from "./views/batch.js";
import { find } from "./views/find.js";
import { held } from "./views/held.js";
import { transaction, transactions, withdrawal, withdrawals } from "./views/queued.js";
import { nodes } from "./views/nodes.js";
import { events } from "./views/events.js";
import { log } from "./views/log.js";
import { webhooks, webhook } from "./views/webhooks.js";

const ALWAYS = () => true;
const NEVER = () => false;
/** Name, title, the view, the view of one thing, and when it is offered. */
const VIEWS = [
  { name: "", title: "Overview", list: overview },
  { name: "services", title: "Services", list: services, one: service },
  { name: "batches", title: "Batches", list: batches, one: batch },
  { name: "held", title: "Held", list: held },
  { name: "withdrawals", title: "Withdrawals", list: withdrawals, one: withdrawal, isOffered: () => serves("withdrawals") },
  { name: "transactions", title: "Transactions", list: transactions, one: transaction, isOffered: () => serves("transactions") },
  { name: "nodes", title: "Nodes", list: nodes },
  { name: "events", title: "Events", list: events },
  { name: "webhooks", title: "Webhooks", list: webhooks, one: webhook, isOffered: () => serves("webhooks") && may("operate") },
  { name: "log", title: "Log", list: log, isOffered: () => mayForSome("operate") },
  { name: "find", title: "Find", list: find, isOffered: NEVER },
];
/** A view is read again after an event, but not more often, and without an event after so long. */
const SHORTEST_PAUSE = 1000;
const LONGEST_PAUSE = 5000;

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const signOut = document.getElementById("sign-out");
const stale = document.getElementById("stale");
const search = document.getElementById("find");

let current = null;
let following = null;
let isKnown = false;

/** What the address names. */
function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  return { name, id: id === undefined ? undefined : decodeURIComponent(id), parameters: new URLSearchParams(query) };
}

function open() {
  const { name, id, parameters } = parse();
  const { title, list, one } = VIEWS.find((it) => it.name === name) ?? VIEWS[0];
  current?.abort();
  current = new AbortController();
  const { signal } = current;
  markView();
  document.title = `${id ? `${id.slice(0, 12)} · ` : ""}${title} · grid-batch`;
  replace(main, element("p", { class: "muted" }, "Loading …"));
  const view = (id !== undefined && one ? one : list)({ main: element("div"), id, parameters, refresh });
  show(view, signal);
}

/** Reads the view, and again after events, until another one is opened. */
async function show(view, signal) {
  while (!signal.aborted) {
    try {
      if (!isKnown) await learn();
      await view.load();
      if (signal.aborted) return;
      if (!main.contains(view.main)) replace(main, view.main);
      answered();
      startFollowing();
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 401) {
        forget();
        showSignIn(main, token() ? explain(error) : null, start);
        return;
      }
      failed(view, error);
    }
    await pause(signal);
  }
}

/** Offers what the token allows and the server serves. */
async function learn() {
  await readAccess();
  isKnown = true;
  signOut.hidden = !token();
  search.hidden = false;
  replace(document.getElementById("views"), VIEWS.filter(({ isOffered = ALWAYS }) => isOffered()).map(({ name, title }) =>
    element("a", { href: `#/${name}`, "data-view": name }, title)));
  markView();
}

function forget() {
  stopFollowing();
  forgetAccess();
  isKnown = false;
  signOut.hidden = true;
  search.hidden = true;
  replace(document.getElementById("views"));
  answered();
}

function markView() {
  const { name } = parse();
  for (const anchor of document.querySelectorAll("#views a")) {
    if (anchor.dataset.view === name) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  // On a phone, the row of views is wider than the window.
  document.querySelector("#views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** When the server last answered what a view asked for. */
let answeredAt = null;

function answered() {
  answeredAt = Date.now();
  stale.hidden = true;
}

/** While the server does not answer, the view keeps what it has. What the server refuses is shown in its place. */
function failed(view, error) {
  const isRefused = error instanceof Problem && error.status < 500;
  if (!isRefused && main.contains(view.main)) {
    const lasted = duration((Date.now() - answeredAt) / 1000);
    stale.textContent = `No answer for ${lasted}: these are the values of ${clock(answeredAt)}. ${explain(error)}`;
    stale.hidden = false;
    return;
  }
  stale.hidden = true;
  signOut.hidden = !token();
  replace(main, element("h1", {}, "This view cannot be shown"), element("p", { class: "notice bad", role: "alert" }, explain(error)));
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
  connection.textContent = isConnected ? "live" : "no live events";
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
  forget();
  open();
}

search.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = new FormData(search).get("text").trim();
  if (text) location.hash = route("find", undefined, { text });
});
signOut.addEventListener("click", () => { setToken(null); start(); });
addEventListener("hashchange", () => { open(); main.focus(); });
start();
