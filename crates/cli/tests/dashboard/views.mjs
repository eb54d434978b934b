// Each view shows what the server has, in both color schemes and on a phone, without a violation of the accessibility rules.

import assert from "node:assert/strict";
import { check, given, heading, open, run, screenshot, text } from "./browser.mjs";

const { url, committed, held, service } = given;

const VIEWS = [
  ["overview", "#/", "Overview", ["Age of the oldest open batch", "paused: maintenance", "Pause all"]],
  ["services", "#/services", "Services", [service, "paused: maintenance", "Resume"]],
  ["service", `#/services/${encodeURIComponent(service)}`, "Service", ["The service", "Oldest open batches", held.slice(0, 12)]],
  ["batches", "#/batches", "Batches", [held.slice(0, 12), committed.slice(0, 12), "committed"]],
  ["batch", `#/batches/${committed}`, "Batch", [committed, "accepted", "submitted", "status"]],
  ["held", "#/held", "Held batches", ["look first", "End as invalid"]],
  ["withdrawals", "#/withdrawals", "Withdrawals", ["no pools"]],
  ["transactions", "#/transactions", "Transactions", ["no accounts"]],
  ["nodes", "#/nodes", "Nodes and instances", ["sawtooth", "http://127.0.0.1", "Drain", "confirmed"]],
  ["events", "#/events", "Events", ["accepted", held.slice(0, 12)]],
];

await run(async (browser) => {
  for (const [scheme, width] of [["light", 1200], ["dark", 360]]) {
    const page = await open(browser, `${url}/dashboard`, { scheme, width, expected: [404] });
    await text(page, "live");
    for (const [name, hash, title, shown] of VIEWS) {
      await page.goto(`${url}/dashboard${hash}`);
      await heading(page, title);
      for (const part of shown) await text(page, part);
      await check(page, `${name}, ${scheme}, ${width}`);
      if (!["withdrawals", "transactions"].includes(name)) await screenshot(page, width === 1200 ? name : `${name}-phone`);
    }
    await page.close();
  }
  const page = await open(browser, `${url}/`);
  await heading(page, "Overview");
  assert.equal(new URL(page.url()).pathname, "/dashboard");

  // By keyboard alone: the link that skips the views, then the search of a batch.
  await page.goto(`${url}/dashboard#/batches`);
  await heading(page, "Batches");
  await page.keyboard.press("Tab");
  await page.locator("input[name=id]").focus();
  await page.keyboard.type(committed.slice(0, 8));
  await page.keyboard.press("Enter");
  await heading(page, committed.slice(0, 12));
  await page.goBack();
  await heading(page, "Batches");
  await page.locator("select[name=state]").selectOption("committed");
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForFunction((id) => !document.body.innerText.includes(id), held.slice(0, 12));
  await text(page, committed.slice(0, 12));
  assert.deepEqual(page.problems, []);
});
