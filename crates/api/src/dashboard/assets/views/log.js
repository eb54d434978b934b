// What operators did, the latest first.

import { ago, batchLink, contains, element, replace, serviceLink, table } from "../dom.js";
import { get } from "../server.js";
import { pageLinks } from "./filters.js";

export function log({ main, parameters }) {
  const after = parameters.get("after");
  let filter = "";
  let page = null;
  const list = element("div");
  main.append(
    element("h1", {}, "Log of operators"),
    element("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
      element("label", {}, "This page contains", element("input", { type: "search", name: "part", oninput: (event) => { filter = event.target.value; show(); } }))),
    list);
  const show = () => {
    const verb = (it) => it.verb.replaceAll("_", " ");
    const change = (it) => `${it.changed.from} → ${it.changed.to}`;
    const matching = page.data.filter((it) => contains(filter, it.actor, verb(it), it.service_id, it.batch_id, it.target_id, it.instance_id, it.reason, change(it)));
    replace(list,
      table("Log of operators", [
        { name: "Time", cell: (it) => ago(it.acted_at) },
        { name: "Operator", cell: (it) => it.actor },
        { name: "Verb", cell: verb },
        { name: "About", cell: about },
        { name: "Change", text: true, cell: change },
        { name: "Reason", text: true, cell: (it) => it.reason ?? "" },
      ], matching, "No operator has done anything that matches."),
      pageLinks("log", "entries", {}, "after", after, page.next));
  };
  const load = async () => {
    page = await get("/v1/operator-actions", { limit: 100, after });
    show();
  };
  return { main, load };
}

function about(it) {
  if (it.batch_id) return batchLink(it.batch_id, it.service_id);
  if (it.service_id) return serviceLink(it.service_id);
  return [it.target.replaceAll("_", " "), " ", it.instance_id ?? it.target_id];
}
