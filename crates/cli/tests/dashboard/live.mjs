// The page of one instance shows what another one accepts, without being loaded again.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { given, heading, open, run, text } from "./browser.mjs";

const { url, other, list, batch } = given;

await run(async (browser) => {
  const events = await open(browser, `${url}/dashboard#/events`);
  const batches = await open(browser, `${url}/dashboard#/batches`);
  await Promise.all([text(events, "live"), text(batches, "live"), heading(events, "Events"), heading(batches, "Batches")]);
  await events.evaluate(() => { window.loadedOnce = true; });
  const submitted = await fetch(`${other}/v1/batches?service_id=${encodeURIComponent(given.service)}`, {
    method: "POST", headers: { "content-type": "application/octet-stream" }, body: readFileSync(list),
  });
  assert.equal(submitted.status, 202);
  for (const page of [events, batches]) {
    await text(page, batch.slice(0, 12));
    await page.locator(".state", { hasText: "committed" }).first().waitFor();
    assert.deepEqual(page.problems, []);
  }
  assert.equal(await events.evaluate(() => window.loadedOnce), true);
});
