// The walk with the TypeScript SDK 1.x: PREFIX URL. Run it with the folder that holds the SDK in
// the environment variable SDK (an ES module is not found by NODE_PATH).
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { createRequire } from "node:module";

const require = createRequire(join(process.env.SDK, "package.json"));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = await load("types.js");

const WAIT_MS = 60_000;
const [prefix, url] = process.argv.slice(2);
const named = (name) => `${prefix}${name}`;
const pause = () => new Promise((done) => setTimeout(done, 50));
setTimeout(() => fail(new Error("It took too long")), WAIT_MS).unref();

function fail(error) {
  console.error(error);
  process.exit(1);
}

async function until(condition) {
  while (!(await condition())) await pause();
}

async function codeOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error.code;
  }
  return null;
}

const client = new Client({ name: "walk", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
let changes = 0;
client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
await client.connect(transport);

const call = (name, args = {}, options = {}) =>
  client.callTool({ name: named(name), arguments: args }, undefined, options);
const text = async (name, args) => (await call(name, args)).content[0].text;
const tools = async () => (await client.listTools()).tools.map((tool) => tool.name);

const seen = {
  version: transport.protocolVersion,
  tools: await tools(),
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  templates: (await client.listResourceTemplates()).resourceTemplates.map(
    (template) => template.uriTemplate,
  ),
  text: await text("test_simple_text"),
  structured: (await call("test_structured_content", { numbers: [1, 2] })).structuredContent,
  progress: [],
  routed: await text("test_routed_by_header", { region: "Zürich", priority: 3 }),
  failed: (await call("test_error_handling")).isError,
  unknown: await codeOf(call("no_such_tool")),
  read: (await client.readResource({ uri: "test://static-text" })).contents[0].text,
  template: (await client.readResource({ uri: "test://template/123/data" })).contents[0].text,
  missing: await codeOf(client.readResource({ uri: "test://nothing" })),
};
const greeting = await client.getPrompt({
  name: named("test_prompt_with_arguments"),
  arguments: { arg1: "one", arg2: "two" },
});
seen.prompt = greeting.messages[0].content.text;
await call("test_tool_with_progress", {}, { onprogress: (it) => seen.progress.push(it.progress) });

await text("test_toggle_tool");
await until(() => changes > 0);
await until(async () => (await tools()).includes(named("test_visitor")));
await text("test_toggle_tool");
seen.told = true;

const stop = new AbortController();
const lasting = codeOf(call("test_lasting", { seconds: 600 }, { signal: stop.signal }));
await until(async () => (await text("test_count_lasting")) === "1");
stop.abort("enough");
await lasting;
await until(async () => (await text("test_count_lasting")) === "0");
seen.cancelled = true;

console.log(JSON.stringify(seen));
await client.close();
