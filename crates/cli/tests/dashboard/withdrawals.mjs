// The withdrawals of a server for an EVM chain, and the gas price against the cap.

import { check, given, heading, open, run, screenshot, tablesFit, text } from "./browser.mjs";

const { url, withdrawal } = given;

await run(async (browser) => {
  for (const [scheme, width] of [["light", 360], ["dark", 360], ["light", 800], ["dark", 1200], ["light", 1200]]) {
    const page = await open(browser, `${url}/dashboard#/withdrawals`, { scheme, width });
    await heading(page, "Withdrawals");
    for (const shown of ["above the cap", "of at most 200 gwei", "ether", withdrawal.slice(0, 12), "parked"]) await text(page, shown);
    await check(page, `withdrawals, ${scheme}, ${width}`);
    await tablesFit(page, `withdrawals, ${scheme}, ${width}`);
    if (width !== 800) await screenshot(page, "withdrawals", scheme, width);
    await page.close();
  }
  const page = await open(browser, `${url}/dashboard#/withdrawals/${withdrawal}`);
  await heading(page, "Withdrawal");
  for (const shown of ["The withdrawal is parked: the base fee is", "Beneficiary", "Cancel"]) await text(page, shown);
  await check(page, "withdrawal");
  await page.goto(`${url}/dashboard#/batches/${withdrawal}`);
  await heading(page, "Batch");
  await text(page, "gas price");
});
