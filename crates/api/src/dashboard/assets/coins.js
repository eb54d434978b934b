// Amounts of a chain's own coins, in the unit in which they are short. The title has all digits, in wei.

import { element } from "./dom.js";

const UNITS = [[18, "ether"], [9, "gwei"]];

export function coins(wei) {
  const [digits, unit] = UNITS.find(([digits]) => wei.length > digits - 4) ?? [0, "wei"];
  const text = wei === "0" ? "0 ether" : `${shifted(wei, digits)} ${unit}`;
  return element("span", { title: `${wei} wei`, class: "coins" }, text);
}

/** A number of smallest units in units of so many digits, with up to six digits after the point. */
function shifted(number, digits) {
  const padded = number.padStart(digits + 1, "0");
  const whole = BigInt(padded.slice(0, padded.length - digits)).toLocaleString("en");
  const rest = padded.slice(padded.length - digits).slice(0, 6).replace(/0+$/, "");
  return rest ? `${whole}.${rest}` : whole;
}
