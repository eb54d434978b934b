// Each view with many services and batches fits a window of this width, in this color scheme. These are the images of the manual.

import { check, given, heading, open, run, screenshot, tablesFit, text } from "./browser.mjs";

const { url, service, committed, invalid, scheme, width } = given;

const VIEWS = [
  ["overview", "#/?range=6h", "Overview", ["What needs attention", "History"]],
  ["services", "#/services", "Services", [service]],
  ["service", `#/services/${encodeURIComponent(service)}`, "Service", ["Oldest open batches"]],
  ["batches", "#/batches", "Batches", ["committed in 24 h"]],
  ["batch", `#/batches/${committed}`, "Batch", ["Signer", "test 1.0"]],
  ["invalid-batch", `#/batches/${invalid}`, "Batch", ["Why it is invalid"]],
  ["held", "#/held", "Held batches", ["the application asks for it"]],
  ["nodes", "#/nodes", "Nodes and instances", ["Claims"]],
  ["events", "#/events", "Events", ["Contains"]],
  ["webhooks", "#/webhooks", "Webhooks", ["https://receiver.example"]],
  ["log", "#/log", "Log of operators", ["maintenance of the node"]],
];

await run(async (browser) => {
  const page = await open(browser, `${url}/dashboard`, { scheme, width });
  await text(page, "live");
  for (const [name, hash, title, shown] of VIEWS) {
    await page.goto(`${url}/dashboard${hash}`);
    await heading(page, title);
    for (const part of shown) await text(page, part);
    await check(page, `${name}, ${scheme}, ${width}`);
    await tablesFit(page, `${name}, ${scheme}, ${width}`);
    if (width !== 800) await screenshot(page, name, scheme, width);
  }
  if (width !== 800) await dialogs(page);
});

async function dialogs(page) {
  await page.goto(`${url}/dashboard#/held`);
  await page.getByRole("button", { name: "Decide …" }).first().click();
  await text(page, "Do nothing");
  await page.locator("ul.choices button").first().waitFor();
  await screenshot(page, "decision", scheme, width);
  await page.getByRole("button", { name: "Do nothing" }).click();
  await page.goto(`${url}/dashboard#/batches?state=open`);
  await page.getByRole("button", { name: "Act on all open that match …" }).click();
  await page.locator("#confirm:enabled").waitFor();
  await check(page, `many, ${scheme}, ${width}`);
  await screenshot(page, "many", scheme, width);
  await page.getByRole("button", { name: "Do nothing" }).click();
}
