// While no server answers, the page keeps its last values and says how old they are.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { check, given, heading, open, run, text } from "./browser.mjs";

const { url, batch, stopped, restarted } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard#/batches`, { expected: ["ERR_"] });
  await heading(page, "Batches");
  await text(page, batch.slice(0, 12));
  await text(page, "live");
  assert.equal(await page.locator("#stale").isVisible(), false);
  writeFileSync(stopped, "");
  await text(page, /^No answer for .* these are the values of \d\d:\d\d:\d\d\. The server cannot be reached/);
  await text(page, batch.slice(0, 12));
  await text(page, "no live events");
  page.problems.length = 0;
  await check(page, "without a server");
  writeFileSync(restarted, "");
  await page.locator("#stale").waitFor({ state: "hidden" });
  await text(page, "live");
  await text(page, batch.slice(0, 12));
});
