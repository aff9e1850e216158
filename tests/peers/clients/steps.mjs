// Take steps through a gateway as the TypeScript SDK's client: URL MODE, and the steps on stdin. A
// step is [server, what, name, arguments]; each prints one line of JSON with what was seen. MODE is
// `1` for the SDK 1.x, else the mode of 2.x. Whoever is asked is Ada, in Bern.
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 20_000;

const [url, mode] = process.argv.slice(2);
const { connect } = await import(mode === "1" ? "./sdk_1.mjs" : "./sdk_2.mjs");

const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const answers = {
  "elicitation/create": { action: "accept", content: { name: "Ada" } },
  "sampling/createMessage": {
    role: "assistant",
    content: { type: "text", text: "Bern" },
    model: "a-model",
  },
  "roots/list": { roots: [{ uri: "file:///home/ada" }] },
};
const api = await connect(url, capabilities, answers, mode);
const { client, version } = api;

const call = async (name, args, options) =>
  (await api.call(name, args, options)).content[0].text;

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
  subscribe: async (uri, { within_s }) => {
    const late = pause(within_s * 1000, "no update");
    const told = new Promise((hear) => {
      api.subscribe(uri, (updated) => void (updated === uri && hear("updated")));
    });
    return await Promise.race([told, late]);
  },
  cancel: async (name, { arguments: args, witness }) => {
    const told = () => call(witness.name, witness.arguments);
    const [before, stop] = [await told(), new AbortController()];
    await new Promise((going, failed) => {
      const options = { signal: stop.signal, onprogress: going };
      call(name, args, options).catch(failed);
    });
    stop.abort("enough");
    const until = Date.now() + PATIENCE_MS;
    while ((await told()) === before) {
      if (Date.now() > until) return "the server has not heard of it";
      await pause(50);
    }
    return "the server knows";
  },
  progress: async (name, args) => {
    let heard = 0;
    await call(name, args, { onprogress: () => void heard++ });
    return heard;
  },
};

for (const [server, what, name, args] of JSON.parse(readFileSync(0, "utf8"))) {
  const saw = await take[what](name, args).catch((error) => String(error));
  console.log(JSON.stringify({ server, what, version, saw }));
}
await client.close();
process.exit(0);
