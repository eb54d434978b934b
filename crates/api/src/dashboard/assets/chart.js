// Line charts. The numbers are also in the text of each, for those who cannot see it.

import { element } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 140;
const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** A number above all values, with one digit that counts. */
function top(values) {
  const largest = Math.max(...values, 0);
  if (largest === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= largest);
}

/**
 * A chart. A series is {name, values: [[seconds ago, value]]}; `format` makes a value a text.
 */
export function chart(title, series, format) {
  const all = series.flatMap((it) => it.values.map(([, value]) => value));
  const longest = Math.max(...series.flatMap((it) => it.values.map(([age]) => age)), 60);
  const limit = top(all);
  const x = (age) => WIDTH * (1 - age / longest);
  const y = (value) => HEIGHT - 4 - (HEIGHT - 8) * (value / limit);
  const now = series.map((it) => `${it.name} ${format(it.values.at(-1)?.[1] ?? 0)}`);
  const label = `${title}: now ${now.join(", ")}; the largest value is ${format(Math.max(...all, 0))}`;
  const drawing = shape("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  for (const value of [0, limit / 2, limit]) {
    drawing.append(shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(value), y2: y(value) }));
  }
  series.forEach((it, at) => {
    const points = it.values.map(([age, value]) => `${x(age).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    drawing.append(shape("polyline", { class: at === 0 ? "line" : "line second", points }));
  });
  const key = (it, at) => element("span", { class: at === 0 ? "key-first" : "key-second" }, `${it.name}: `, element("b", {}, format(it.values.at(-1)?.[1] ?? 0)));
  return element("figure", {},
    element("figcaption", {}, element("b", {}, title), series.map(key)),
    element("div", { class: "axis" }, element("span", {}, format(limit))),
    drawing,
    element("div", { class: "axis" }, element("span", {}, `${Math.round(longest / 60)} min ago`), element("span", {}, "now")));
}
