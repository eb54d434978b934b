// Each view shows what the server has, in both color schemes and on a phone, without a violation of the accessibility rules.

import assert from "node:assert/strict";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, committed, held, service } = given;

const VIEWS = [
  ["overview", "#/", "Overview", ["Age of the oldest open batch", "by local: maintenance", "Pause all"]],
  ["services", "#/services", "Services", [service, "by local: maintenance", "Resume"]],
  ["service", `#/services/${encodeURIComponent(service)}`, "Service", ["The service", "Oldest open batches", held.slice(0, 12)]],
  ["batches", "#/batches", "Batches", [held.slice(0, 12), committed.slice(0, 12), "committed"]],
  ["batch", `#/batches/${committed}`, "Batch", [committed, "accepted", "submitted", "status", "test 1.0", "set global to 0", "7e57"]],
  ["held", "#/held", "Held batches", ["look first", "Decide …"]],
  ["nodes", "#/nodes", "Nodes and instances", ["sawtooth", "http://127.0.0.1", "Drain", "confirmed"]],
  ["events", "#/events", "Events", ["accepted", held.slice(0, 12)]],
  ["webhooks", "#/webhooks", "Webhooks", ["There are no webhooks."]],
  ["log", "#/log", "Log of operators", ["pause", "maintenance", "look first"]],
];

await run(async (browser) => {
  for (const [scheme, width] of [["light", 1200], ["dark", 360]]) {
    const page = await open(browser, `${url}/dashboard`, { scheme, width });
    await text(page, "live");
    for (const [name, hash, title, shown] of VIEWS) {
      await page.goto(`${url}/dashboard${hash}`);
      await heading(page, title);
      for (const part of shown) await text(page, part);
      await check(page, `${name}, ${scheme}, ${width}`);
    }
    await page.close();
  }
  const page = await open(browser, `${url}/`);
  await heading(page, "Overview");
  assert.equal(new URL(page.url()).pathname, "/dashboard");
  const views = await page.locator("#views a").allTextContents();
  assert.ok(!views.includes("Withdrawals") && !views.includes("Transactions"), `this ledger has none: ${views}`);

  // One field finds anything by a part.
  await find(page, committed.slice(0, 9));
  await heading(page, committed.slice(0, 12));
  await find(page, "LOBA");
  await heading(page, `Service ${service}`);

  // Charts show the values at the pointer.
  await page.goto(`${url}/dashboard#/?range=15m`);
  await page.locator(".plot").first().hover();
  await page.locator("figure .keys", { hasText: "ago" }).first().waitFor();

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
  await page.locator(".counts a", { hasText: "held" }).filter({ hasText: "1" }).waitFor();
  await page.locator("input[name=service]").fill("lob");
  await page.locator("select[name=stored]").selectOption({ label: "in the last hour" });
  await page.locator("select[name=state]").selectOption("committed");
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForFunction((id) => !document.body.innerText.includes(id), held.slice(0, 12));
  await text(page, committed.slice(0, 12));
  assert.deepEqual(page.problems, []);
});

async function find(page, text) {
  await page.locator("#find input").fill(text);
  await page.keyboard.press("Enter");
}
