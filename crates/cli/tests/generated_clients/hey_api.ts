// Submits a batch, waits for its end and lists it, with the client of @hey-api/openapi-ts.
import { readFileSync } from "node:fs";
import { getBatch, listBatches, submitOwnBatches } from "./hey_api_client";
import { client } from "./hey_api_client/client.gen";

async function main([baseUrl, file]: string[]): Promise<void> {
  client.setConfig({ baseUrl });
  const body = new Blob([readFileSync(file)]);
  const submitted = await submitOwnBatches({ body, throwOnError: true });
  const id = submitted.data.data[0].id;
  const read = async () => (await getBatch({ path: { id }, throwOnError: true })).data.state;
  while ((await read()) !== "committed") await new Promise((resolve) => setTimeout(resolve, 50));
  const listed = await listBatches({ query: { state: ["committed", "invalid"] }, throwOnError: true });
  const found = listed.data.data.find((batch) => batch.id === id);
  console.log(`${found?.state} ${new Date(found?.stored_at ?? "").getFullYear()}`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
