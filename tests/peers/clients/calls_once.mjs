// One call that takes a while, made with the TypeScript SDK 1.x: URL, TOOL, arguments as JSON.
import path from "node:path";
import { pathToFileURL } from "node:url";

const sdk = (file) =>
  import(pathToFileURL(path.join(process.env.SDK, "node_modules/@modelcontextprotocol/sdk/dist/esm", file)));
const { Client } = await sdk("client/index.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");

const [url, name, given] = process.argv.slice(2);
const progress = [];
const client = new Client({ name: "calls-once", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const result = await client.callTool({ name, arguments: JSON.parse(given) }, undefined, {
  onprogress: (report) => progress.push(report.progress),
  timeout: 60_000,
});
console.log(JSON.stringify({ progress, text: result.content[0].text }));
await client.close();
