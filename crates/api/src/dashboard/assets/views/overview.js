// How the whole works: rates, depth and age over time, and what needs attention.

import { chart } from "../chart.js";
import { duration, element, number, replace, serviceLink, state, table } from "../dom.js";
import { get, getIfAllowed } from "../server.js";
import { allServicesButton } from "../verbs.js";
import { problems, stateOf } from "./services.js";

export function overview({ main, refresh }) {
  const load = async () => {
    const [health, history, services] = await Promise.all([
      getIfAllowed("/health"), get("/v1/history"), getIfAllowed("/v1/services", { limit: 1000 }),
    ]);
    replace(main,
      element("h1", {}, "Overview"),
      cards(health, history.data),
      charts(history.data),
      attention(health, services),
      element("h2", {}, "All services"),
      element("div", { class: "buttons" },
        allServicesButton("pause", "start no new submission of any service; what is under way is followed", refresh),
        allServicesButton("resume", "end the pause of all services", refresh)));
  };
  return { main, load };
}

function cards(health, points) {
  const last = points.at(-1);
  const services = health?.parts?.services ?? {};
  const entries = [
    ["Health", health ? state(health.status) : "not allowed"],
    ["Open batches", number(last?.open ?? 0)],
    ["Committed", `${rate(points, "committed").at(-1)?.[1].toFixed(1) ?? "0.0"}/s`],
    ["Oldest open batch", duration(last?.oldest_seconds ?? 0)],
    ["Held", number(services.held ?? 0)],
    ["Services that fail", number(services.failing ?? 0)],
    ["Services paused", services.all_paused ? "all" : number(services.paused ?? 0)],
  ];
  return element("dl", { class: "cards" },
    entries.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

/** The increase of a count for each second, between neighboring points. */
function rate(points, name) {
  return points.slice(1).map((point, at) => {
    const before = points[at];
    const seconds = before.seconds_ago - point.seconds_ago;
    return [point.seconds_ago, seconds > 0 ? Math.max(0, point[name] - before[name]) / seconds : 0];
  });
}

function charts(points) {
  if (points.length < 2) return element("p", { class: "muted" }, "The charts begin some seconds after the start of the server.");
  const values = (name) => points.map((point) => [point.seconds_ago, point[name]]);
  return element("div", { class: "charts" },
    chart("Batches per second, this instance",
      [{ name: "committed", values: rate(points, "committed") }, { name: "submitted", values: rate(points, "submitted") }],
      (value) => value.toFixed(value < 10 ? 1 : 0)),
    chart("Open batches", [{ name: "open", values: values("open") }], (value) => number(Math.round(value))),
    chart("Age of the oldest open batch", [{ name: "age", values: values("oldest_seconds") }], duration));
}

function attention(health, services) {
  const parts = Object.entries(health?.parts ?? {}).filter(([, part]) => part.status !== "ok");
  const waiting = (services?.data ?? []).filter((service) => problems(service).length > 0);
  waiting.sort((a, b) => (b.oldest_age_seconds ?? 0) - (a.oldest_age_seconds ?? 0));
  return [
    element("h2", {}, "What needs attention"),
    parts.map(([name, part]) => element("p", { class: "notice" }, state(part.status), ` ${name}: ${part.reason ?? "it does not work as it should"}`)),
    services === null
      ? element("p", { class: "muted" }, "The token does not allow the list of all services.")
      : table("Services that wait", [
        { name: "Service", cell: (it) => serviceLink(it.service_id) },
        { name: "State", cell: stateOf },
        { name: "Open", number: true, cell: (it) => number(it.open) },
        { name: "Oldest", number: true, cell: (it) => duration(it.oldest_age_seconds) },
        { name: "Why", text: true, cell: (it) => problems(it).join("; ") },
      ], waiting.slice(0, 20), "No service is stopped."),
  ];
}
