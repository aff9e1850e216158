// Take steps through a gateway as the TypeScript SDK's client: URL, and the steps on stdin. A step
// is [server, what, name, arguments]; each prints one line of JSON with what was seen. Whoever is
// asked is Ada, in Bern. The environment variable SDK is the folder that holds the SDK.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SDK, "package.json"));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const types = await load("types.js");

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const client = new Client({ name: "steps", version: "1" }, { capabilities });
client.setRequestHandler(types.ElicitRequestSchema, () => ({
  action: "accept",
  content: { name: "Ada" },
}));
client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
  role: "assistant",
  content: { type: "text", text: "Bern" },
  model: "a-model",
}));
client.setRequestHandler(types.ListRootsRequestSchema, () => ({
  roots: [{ uri: "file:///home/ada" }],
}));

const call = async (name, args, options) =>
  (await client.callTool({ name, arguments: args }, undefined, options)).content[0].text;

const take = {
  call,
  elicit: call,
  sample: call,
  roots: call,
  list: async (name) => {
    const { tools } = await client.listTools();
    return tools.map((tool) => tool.name).filter((found) => found.includes(name));
  },
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  prompt: async (name, args) =>
    (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
  complete: async (name, argument) =>
    (await client.complete({ ref: { type: "ref/prompt", name }, argument })).completion.values,
  subscribe: async (uri) => {
    await client.subscribeResource({ uri });
    return "subscribed";
  },
  progress: async (name, args) => {
    let heard = 0;
    await call(name, args, { onprogress: () => void heard++ });
    return heard;
  },
};

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await client.connect(transport);
for (const [server, what, name, args] of JSON.parse(readFileSync(0, "utf8"))) {
  const saw = await take[what](name, args).catch((error) => String(error));
  const version = transport.protocolVersion;
  console.log(JSON.stringify({ server, what, version, saw }));
}
await client.close();
process.exit(0);
