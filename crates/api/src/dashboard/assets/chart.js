// Line charts. The numbers are also in the text of each, for those who cannot see it.

import { element } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 140;
const MARGIN = 4;
const SVG = "http://www.w3.org/2000/svg";
const STEPS = [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10];
/** Limits of axes of time that divide well, in seconds. */
const TIMES = [10, 20, 60, 120, 240, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800];

/** Where the pointer is, also after a chart was drawn again: the title of the chart, and the share of its width. */
let pointed = null;
document.addEventListener("pointermove", ({ target }) => {
  if (pointed && !target.closest?.(".plot")) pointed = null;
});

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** The end of a scale of counts: not far above the largest value. */
export function topOfCounts(largest) {
  if (largest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return STEPS.map((step) => step * power).find((step) => step >= largest);
}

/** The same for whole numbers: its middle is one, too. */
export function topOfWholes(largest) {
  return largest <= 10 ? Math.max(2, 2 * Math.ceil(largest / 2)) : topOfCounts(largest);
}

/** The end of a scale of seconds. */
export function topOfTimes(largest) {
  return TIMES.find((time) => time >= largest) ?? Math.ceil(largest / 86400) * 86400;
}

/**
 * A chart. A series is {name, values: [[seconds ago, value]]}; a missing value is null. `range` is its width in seconds,
 * `format` makes a value a text, `top` is the end of the scale for the largest value.
 */
export function chart(title, series, { range, format, top = topOfCounts }) {
  const all = series.flatMap((it) => it.values.map(([, value]) => value ?? 0));
  const largest = Math.max(...all, 0);
  const limit = top(largest);
  const x = (age) => WIDTH * (1 - age / range);
  const y = (value) => HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value / limit);
  const latest = (it) => it.values.findLast(([, value]) => value !== null)?.[1] ?? 0;
  const now = series.map((it) => `${it.name} ${format(latest(it))}`);
  const label = `${title}: now ${now.join(", ")}; the largest value is ${format(largest)}`;
  const drawing = shape("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  for (const value of [0, limit / 2, limit]) {
    drawing.append(shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(value), y2: y(value) }));
  }
  drawing.append(shape("line", { class: "grid", x1: WIDTH / 2, x2: WIDTH / 2, y1: MARGIN, y2: HEIGHT - MARGIN }));
  series.forEach((it, at) => {
    for (const part of unbroken(it.values)) {
      const points = part.map(([age, value]) => `${x(age).toFixed(1)},${y(value).toFixed(1)}`);
      if (points.length === 1) points.push(points[0]);
      drawing.append(shape("polyline", { class: `line series-${at}`, points: points.join(" ") }));
    }
  });
  const key = (it, at) => element("span", { class: `key-${at}` }, `${it.name}: `, element("b", {}, format(latest(it))));
  const keys = element("div", { class: "keys" }, series.map(key));
  const plot = element("div", { class: "plot" }, drawing);
  const axis = [limit, limit / 2, 0].map((value) => element("span", {}, format(value)));
  follow(plot, title, series, { x, format, keys, shown: keys.firstChild ? [...keys.childNodes] : [] });
  return element("figure", {},
    element("figcaption", {}, element("b", {}, title), keys),
    element("div", { class: "with-axis" }, element("div", { class: "axis vertical" }, axis), plot),
    element("div", { class: "axis" }, [range, range / 2, 0].map((age) => element("span", {}, age === 0 ? "now" : `${span(age)} ago`))));
}

/** The runs of values between those that are missing. */
function unbroken(values) {
  const runs = [[]];
  for (const point of values) {
    if (point[1] === null) runs.push([]);
    else runs.at(-1).push(point);
  }
  return runs.filter((run) => run.length > 0);
}

/** Shows the values at the pointer in place of the latest ones. */
function follow(plot, title, series, { x, format, keys, shown }) {
  const line = element("div", { class: "pointer", hidden: true });
  plot.append(line);
  const show = (share) => {
    const nearest = (it) => it.values.reduce((best, point) =>
      !best || Math.abs(x(point[0]) - share * WIDTH) < Math.abs(x(best[0]) - share * WIDTH) ? point : best, null);
    const points = series.map(nearest);
    if (!points[0]) return;
    pointed = { title, share };
    line.hidden = false;
    // The policy forbids attributes of style, not this.
    line.style.left = `${(x(points[0][0]) / WIDTH) * 100}%`;
    const at = series.map((it, number) => element("span", { class: `key-${number}` }, `${it.name}: `,
      element("b", {}, points[number]?.[1] === null ? "none" : format(points[number]?.[1] ?? 0))));
    keys.replaceChildren(element("span", { class: "muted" }, `${span(points[0][0])} ago`), ...at);
  };
  const hide = () => {
    pointed = null;
    line.hidden = true;
    keys.replaceChildren(...shown);
  };
  const move = (event) => {
    const { left, width } = plot.getBoundingClientRect();
    if (width > 0) show(Math.min(1, Math.max(0, (event.clientX - left) / width)));
  };
  plot.addEventListener("pointermove", move);
  plot.addEventListener("pointerdown", move);
  plot.addEventListener("pointerleave", hide);
  if (pointed?.title === title) show(pointed.share);
}

function span(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Number((seconds / 3600).toFixed(1))} h`;
}
