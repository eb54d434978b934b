// The overview counts held batches, and a service is shown as held only if its holds stop it.

import { given, heading, open, run } from "./browser.mjs";

const { url, held, state } = given;

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard`);
  await heading(page, "Overview");
  const card = page.locator(".cards > div", { hasText: "Held batches" }).locator("dd");
  await card.filter({ hasText: new RegExp(`^${held}$`) }).waitFor();
  await page.goto(`${url}/dashboard#/services`);
  await heading(page, "Services");
  await page.locator("td .state").filter({ hasText: new RegExp(`^${state}$`) }).waitFor();
});
