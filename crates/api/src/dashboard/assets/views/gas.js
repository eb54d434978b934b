// The accounts of an EVM chain: their balances, and the gas price against the caps.

import { coins } from "../coins.js";
import { ago, element, number, table } from "../dom.js";

export function pools(admins) {
  const rows = admins.flatMap((admin) => admin.pools.map((pool) => ({ admin, pool })));
  return table("Pools", [
    { name: "Pool", cell: ({ pool }) => short(pool.address) },
    { name: "Gas price and cap", cell: ({ admin, pool }) => price(admin.gas_price_gwei, pool.maximum_gas_price_gwei) },
    { name: "Gas admin", cell: ({ admin }) => admin.name },
    { name: "In 24 h", number: true, cell: ({ pool }) => grouped(pool.scheduled_in_24h) },
    { name: "Why its withdrawals wait", text: true, cell: ({ pool }) => pool.paused?.reason ?? "" },
  ], rows, "There are no pools.");
}

/** The price against the cap: in words, and as a bar. */
function price(reading, cap) {
  if (reading.value === null) return element("span", { class: "warning" }, `not known: ${reading.error ?? "not read yet"}`);
  const [now, most] = [Number(reading.value), Number(cap)];
  const text = `${reading.value} of at most ${cap} gwei`;
  const above = now > most;
  return element("span", {},
    element("meter", { min: 0, max: most * 1.5, high: most, optimum: 0, value: now, "aria-label": text }), " ",
    element("span", { class: above ? "warning" : null }, above ? `${text}: above the cap` : text));
}

const WITHDRAWALS_LEFT =
  { name: "Withdrawals left", number: true, cell: (it) => it.withdrawals_left === null ? "" : number(it.withdrawals_left) };

export function gasAdmins(admins) {
  return table("Gas admins", [
    { name: "Name", cell: (it) => it.name },
    { name: "Address", cell: (it) => short(it.address) },
    { name: "Gas price and cap", cell: (it) => price(it.gas_price_gwei, it.maximum_gas_price_gwei) },
    { name: "Balance", number: true, cell: (it) => element("span", { class: it.low_balance ? "bad" : null }, it.balance.value === null ? "not known" : coins(it.balance.value), it.low_balance ? ", low" : "") },
    ...(admins.some((it) => it.pools.length > 0) ? [WITHDRAWALS_LEFT] : []),
    { name: "Open", number: true, cell: (it) => element("span", {}, number(it.queue.open), it.queue.held > 0 && `, ${number(it.queue.held)} held`) },
    { name: "Oldest", cell: (it) => ago(it.queue.oldest_scheduled_at) },
    { name: "Last error", text: true, cell: (it) => it.queue.last_error ?? "" },
  ], admins, "There are no gas admins.");
}

/** An address in a list; the title and the details have all of it. */
export function short(text) {
  return element("span", { class: "id short", title: text }, `${text.slice(0, 8)}…${text.slice(-4)}`);
}

/** Digits in groups of three. An amount can have more than a number holds. */
export function grouped(digits) {
  return BigInt(digits).toLocaleString("en");
}
