// The ledger and its nodes, the instances of the server, and which of them claims which service.

import { duration, element, number, replace, serviceLink, state, table } from "../dom.js";
import { get } from "../server.js";
import { may } from "../access.js";
import { instanceButton } from "../verbs.js";
import { pageLinks } from "./filters.js";

export function nodes({ main, parameters, refresh }) {
  const after = parameters.get("after");
  const load = async () => {
    const [ledgers, claims] = await Promise.all([get("/v1/ledgers"), get("/v1/claims", { limit: 100, after })]);
    const names = new Map(claims.instances.map((it) => [it.instance_id, it.name ?? it.instance_id.slice(0, 12)]));
    replace(main,
      element("h1", {}, "Nodes and instances"),
      ledgers.data.map(ledger),
      element("h2", {}, "Instances of the server"),
      instances(claims, names, refresh),
      element("h2", {}, "Claims"),
      table("Claims", [
        { name: "Service", cell: (it) => serviceLink(it.service_id) },
        { name: "Instance", cell: (it) => it.instance_id ? names.get(it.instance_id) ?? it.instance_id : "none" },
        { name: "Epoch", number: true, cell: (it) => number(it.epoch) },
      ], claims.data, "No service is claimed."),
      pageLinks("nodes", "claims", {}, "after", after, claims.next, ["More", "The first"]));
  };
  return { main, load };
}

function ledger(it) {
  return [
    element("h2", {}, `Ledger: ${it.kind}${it.name ? ` ${it.name}` : ""}`),
    it.id ? element("p", { class: "muted id" }, it.id) : element("p", { class: "muted" }, "Nodes of this kind have no id of their ledger: the setting ledger.name tells it apart from others."),
    it.problem && element("p", { class: "notice bad" }, it.problem),
    table("Nodes", [
      { name: "Node", cell: (node) => element("span", { class: "id" }, node.url) },
      { name: "State", cell: (node) => state(node.answering && node.confirmed ? "ok" : "failing") },
      { name: "Belongs to the ledger", cell: (node) => node.confirmed ? "confirmed" : "not confirmed" },
      { name: "No answer for", cell: (node) => node.unanswered_seconds === null ? "" : duration(node.unanswered_seconds) },
      { name: "Failed connections", number: true, cell: (node) => number(node.failed_connections) },
      { name: "Problem", text: true, cell: (node) => node.problem ?? "" },
    ], it.nodes, "The ledger has no nodes."),
  ];
}

function instances(claims, names, refresh) {
  const claimed = (id) => claims.data.filter((claim) => claim.instance_id === id).length;
  const label = (it) => names.get(it.instance_id);
  return table("Instances", [
    { name: "Instance", cell: (it) => element("span", { class: "id" }, label(it)) },
    { name: "State", cell: (it) => state(it.draining ? "draining" : it.lease_is_over ? "failing" : "running") },
    { name: "Lease ends", cell: (it) => it.lease_ends_at.replace("T", " ").replace(/\..*/, "") },
    { name: "Ledger", cell: (it) => it.ledger_confirmed ? "confirmed" : "not confirmed" },
    { name: "Claims shown here", number: true, cell: (it) => number(claimed(it.instance_id)) },
    ...(may("operate") ? [{ name: "Actions", cell: (it) => it.draining
      ? instanceButton("resume", it.instance_id, label(it), "end the drain of the instance", refresh)
      : instanceButton("drain", it.instance_id, label(it), "start no new submission there and give its services to the others", refresh) }] : []),
  ], claims.instances, "No instance is registered.");
}
