// How the whole works: what needs attention, the present numbers, and rates, depth and age over time.

import { chart, topOfTimes, topOfWholes } from "../chart.js";
import { duration, element, number, replace, route, serviceLink, state, table } from "../dom.js";
import { get, getIfAllowed } from "../server.js";
import { allServicesButton, buttonRow } from "../verbs.js";
import { problems, stateOf } from "./services.js";

const RANGES = [["15m", "15 min", 900], ["1h", "1 h", 3600], ["6h", "6 h", 21600], ["24h", "24 h", 86400]];
const MOST_SERVICES = 5;
/** Counts are read every few seconds. Older ones say so. */
const STALE = 30;

export function overview({ main, parameters, refresh }) {
  const range = RANGES.find(([name]) => name === parameters.get("range")) ?? RANGES[1];
  const history = historyOf(range[0]);
  const load = async () => {
    const [health, points, counts, services] = await Promise.all([
      getIfAllowed("/health"), history(), getIfAllowed("/v1/counts"), getIfAllowed("/v1/services", { limit: 1000 }),
    ]);
    replace(main,
      element("h1", {}, "Overview"),
      attention(health, services),
      cards(health, points, counts?.counts),
      charts(points, counts?.counts, range),
      buttonRow(
        allServicesButton("pause", "start no new submission of any service; what is under way is followed", refresh),
        allServicesButton("resume", "end the pause of all services", refresh)));
  };
  return { main, load };
}

/** The points of a range. A new one begins every ten seconds, so they are not read more often than every five. */
function historyOf(range) {
  let points = [];
  let readAt = 0;
  return async () => {
    if (Date.now() - readAt > 4500) {
      points = (await getIfAllowed("/v1/history", { range }))?.data ?? [];
      readAt = Date.now();
    }
    return points;
  };
}

function cards(health, points, counts) {
  const services = health?.parts?.services ?? {};
  const isStale = counts && counts.age_seconds > STALE;
  const counted = (value) => counts ? [value, isStale && element("small", { class: "warning" }, ` ${duration(counts.age_seconds)} ago`)] : "not known";
  const batches = (parameters) => route("batches", undefined, parameters);
  const rateOf = (name) => `${latest(rates(points, name)).toFixed(1)}/s`;
  const entries = [
    ["Health", health ? state(health.status) : "not allowed", "#/nodes"],
    ["Open batches", counted(number(counts?.open ?? 0)), batches({ state: "open" })],
    ["Oldest open", counted(duration(counts?.oldest_seconds ?? 0)), "#/services"],
    ["Held batches", counted(number(counts?.held ?? 0)), "#/held"],
    ["Committed", rateOf("committed"), batches({ state: "committed", stored: "newer_than:24h" })],
    ["Invalid", rateOf("invalid"), batches({ state: "invalid", stored: "newer_than:24h" })],
    ["Services failing", number(services.failing ?? 0), "#/services"],
    ["Services paused", services.all_paused ? "all" : number(services.paused ?? 0), "#/services"],
  ];
  return element("dl", { class: "cards" }, entries.map(([name, value, href]) => element("div", {},
    element("dt", {}, element("a", { href, "data-key": `card ${name}` }, name)), element("dd", {}, value))));
}

/** The counts of each second. The latest period is left out until all instances have reported what they did in it. */
function rates(points, name) {
  const LATEST = 12;
  const whole = points.filter((point) => point.seconds_ago >= point.seconds + LATEST);
  return withGaps(whole, (point) => point[name] / point.seconds);
}

/** Values by age; where no instance ran, one is missing. */
function withGaps(points, valueOf) {
  return points.flatMap((point, at) => {
    const before = points[at - 1];
    const hasGap = before && before.seconds_ago - point.seconds_ago > 3 * point.seconds;
    const value = [point.seconds_ago, valueOf(point)];
    return hasGap ? [[point.seconds_ago + point.seconds, null], value] : [value];
  });
}

function latest(values) {
  return values.at(-1)?.[1] ?? 0;
}

function charts(points, counts, [name, , seconds]) {
  const choices = element("nav", { class: "ranges", "aria-label": "Range of the charts" }, RANGES.map(([other, text]) =>
    element("a", { href: route("", undefined, { range: other }), "aria-current": other === name ? "true" : null, "data-key": `range ${other}` }, text)));
  const heading = element("div", { class: "heading" }, element("h2", {}, "History"), choices);
  if (points.length < 2) return [heading, element("p", { class: "muted" }, "The charts begin some seconds after the first start of a server.")];
  // A point has the largest values of its period; the present ones are counted.
  const values = (value) => [...withGaps(points, (point) => point[value]), ...(counts ? [[0, counts[value]]] : [])];
  const perSecond = (value) => value.toFixed(value < 10 && value % 1 !== 0 ? 1 : 0);
  const of = (title, series, format, top) => chart(title, series, { range: seconds, format, top });
  return [heading, element("div", { class: "charts" },
    of("Batches per second",
      [["committed", "committed"], ["attempts", "submitted"], ["invalid", "invalid"]].map(([text, it]) => ({ name: text, values: rates(points, it) })), perSecond),
    of("Open batches", [{ name: "open", values: values("open") }], (value) => number(Math.round(value)), topOfWholes),
    of("Age of the oldest open batch", [{ name: "age", values: values("oldest_seconds") }], duration, topOfTimes))];
}

function attention(health, services) {
  const parts = Object.entries(health?.parts ?? {}).filter(([, part]) => part.status !== "ok");
  const waiting = (services?.data ?? []).filter((service) => problems(service).length > 0);
  waiting.sort((a, b) => (b.oldest_age_seconds ?? 0) - (a.oldest_age_seconds ?? 0));
  if (services && parts.length === 0 && waiting.length === 0) return element("p", { class: "good" }, "Nothing needs attention.");
  return element("section", { class: "attention" },
    element("h2", {}, "What needs attention"),
    parts.map(([name, part]) => element("p", { class: `notice ${part.status === "unhealthy" ? "bad" : "warn"}` }, state(part.status), ` ${name}: ${part.reason ?? "it does not work as it should"}`)),
    services === null && element("p", { class: "muted" }, "The token does not allow the list of all services."),
    waiting.length > 0 && table("Services that wait", [
      { name: "Service", cell: (it) => serviceLink(it.service_id) },
      { name: "State", cell: stateOf },
      { name: "Open", number: true, cell: (it) => number(it.open) },
      { name: "Oldest", number: true, cell: (it) => duration(it.oldest_age_seconds) },
      { name: "Why", text: true, cell: (it) => problems(it).join("; ") },
    ], waiting.slice(0, MOST_SERVICES), ""),
    waiting.length > MOST_SERVICES && element("p", {}, element("a", { href: "#/services", "data-key": "waiting" }, `All ${number(waiting.length)} services that wait`)));
}
