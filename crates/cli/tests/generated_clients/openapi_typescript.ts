// Submits a batch, waits for its end and lists it, with the types of openapi-typescript.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./openapi_typescript/api";

async function main([baseUrl, file]: string[]): Promise<void> {
  const client = createClient<paths>({ baseUrl });
  const submitted = await client.POST("/v1/batches", {
    // A binary body has the type string.
    body: readFileSync(file) as unknown as string,
    bodySerializer: (bytes) => bytes as unknown as Buffer,
    headers: { "Content-Type": "application/octet-stream" },
  });
  if (submitted.error) throw new Error(submitted.error.detail);
  const id = submitted.data.data[0].id;
  const read = async () => {
    const batch = await client.GET("/v1/batches/{id}", { params: { path: { id } } });
    if (batch.error) throw new Error(batch.error.detail);
    return batch.data.state;
  };
  while ((await read()) !== "committed") await new Promise((resolve) => setTimeout(resolve, 50));
  const listed = await client.GET("/v1/batches", { params: { query: { state: ["committed", "invalid"] } } });
  if (listed.error) throw new Error(listed.error.detail);
  const found = listed.data.data.find((batch) => batch.id === id);
  console.log(`${found?.state} ${new Date(found?.stored_at ?? "").getFullYear()}`);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
