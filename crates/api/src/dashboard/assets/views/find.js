// Finds anything by a part of its id, name, label or error.

import { may, serves } from "../access.js";
import { contains, element, link, replace, serviceLink, state, table } from "../dom.js";
import { Problem, all, get, getIfAllowed, path } from "../server.js";
import { batchTable } from "./batches.js";

const MOST = 10;

export function find({ main, parameters }) {
  const text = parameters.get("text") ?? "";
  const load = async () => {
    const [batch, services, labelled, failed, queued, nodes] = await Promise.all([
      batchOf(text), servicesOf(text), batchesOf({ label_contains: text }), batchesOf({ error_contains: text }), queuedOf(text), nodesOf(text),
    ]);
    const isOnly = (list, ...others) => list.length === 1 && others.every((other) => other.length === 0);
    if (isOnly(batch, services, labelled, failed, queued, nodes)) return open("batches", batch[0].id, batch[0].service_id);
    if (isOnly(services, batch, labelled, failed, queued, nodes)) return open("services", services[0].service_id);
    const section = (title, list, shown) => list.length > 0 && [element("h2", {}, title), shown];
    const nothing = [batch, services, labelled, failed, queued, nodes].every((list) => list.length === 0);
    replace(main,
      element("h1", {}, `Found for “${text}”`),
      nothing && element("p", { class: "muted" }, "Nothing. Ids of batches are found by their first 8 characters; parts of labels, errors, addresses and keys only among the latest 5,000."),
      section("Batches", batch, batchTable(batch, "")),
      section("Services", services, table("Services", [{ name: "Service", cell: (it) => serviceLink(it.service_id) }, { name: "Open", number: true, cell: (it) => it.open }], services.slice(0, 4 * MOST), "")),
      section("Withdrawals and transactions", queued, table("Withdrawals and transactions", [
        { name: "Id", cell: (it) => link(it.id.slice(0, 12), it.view, it.id) }, { name: "State", cell: (it) => state(it.state) },
      ], queued, "")),
      section("Latest batches with this label", labelled, batchTable(labelled, "")),
      section("Latest batches with this error", failed, batchTable(failed, "")),
      section("Nodes and instances", nodes, element("ul", {}, nodes.map((name) => element("li", {}, link(name, "nodes"))))));
  };
  return { main, load };
}

function open(view, id, service) {
  const query = service ? `?service=${encodeURIComponent(service)}` : "";
  location.replace(`#/${view}/${encodeURIComponent(id)}${query}`);
}

/** What a request finds. That nothing has such an id is no error. */
async function found(request) {
  try {
    return [await request()];
  } catch (error) {
    if (error instanceof Problem && error.status < 500 && error.status !== 401) return [];
    throw error;
  }
}

async function batchOf(text) {
  if (!/^[0-9a-z._~-]{8,128}$/i.test(text)) return [];
  return found(() => get(path("batches", text)));
}

async function batchesOf(filter) {
  return (await getIfAllowed("/v1/batches", { ...filter, limit: MOST }))?.data ?? [];
}

async function servicesOf(text) {
  if (!may("read")) return found(() => get(path("services", text)));
  return (await all("/v1/services", { idle: "true" })).filter((it) => contains(text, it.service_id));
}

/** By id, and by parts of keys, labels, addresses and names of accounts. A whole address or key has an index. */
async function queuedOf(text) {
  const isAddress = /^0x[0-9a-f]{40}$/i.test(text);
  const addresses = (...names) => names.map((name) => ({ [isAddress ? name : `${name}_contains`]: text }));
  const keys = [{ idempotency_key: text }, { idempotency_key_contains: text }];
  const of = async (view, path, filters) => {
    const lists = filters.map((filter) => found(() => get(path, { ...filter, limit: MOST })));
    const one = /^[0-9a-f]{32,}$/i.test(text) ? await found(() => get(`${path}/${encodeURIComponent(text)}`)) : [];
    const rows = [...one, ...(await Promise.all(lists)).flat().flatMap((page) => page.data)];
    return [...new Map(rows.map((row) => [row.id, { ...row, view }])).values()];
  };
  const accounts = async () => {
    const admins = (await getIfAllowed("/v1/gas-admins"))?.data ?? [];
    return admins.filter((it) => contains(text, it.name)).map((it) => ({ account: it.name }));
  };
  const lists = [
    serves("withdrawals") ? of("withdrawals", "/withdrawals", [...addresses("beneficiary", "pool"), ...keys]) : [],
    serves("transactions") ? of("transactions", "/v1/transactions",
      [...addresses("to"), ...(await accounts()), { account_contains: text }, { label_contains: text }, ...keys]) : [],
  ];
  return (await Promise.all(lists)).flat();
}

async function nodesOf(text) {
  const [ledgers, claims] = await Promise.all([getIfAllowed("/v1/ledgers"), getIfAllowed("/v1/claims", { limit: 1 })]);
  const nodes = (ledgers?.data ?? []).flatMap((ledger) => ledger.nodes.map((node) => node.url));
  const instances = (claims?.instances ?? []).map((it) => it.name ?? it.instance_id);
  return [...nodes, ...instances].filter((name) => contains(text, name));
}
