// The notes on the TypeScript SDK 2.x, which serves both eras on one pipe, with tools that ask the
// client. The environment variable SDK_2 is the folder that holds the SDK; CANCELLED is the file in
// which every cancelled call is written down.
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SDK_2, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
const { z } = await load("zod");
const { McpServer, ResourceTemplate, completable, inputRequired } = sdk;

const TODAY = "notes://today";
const CHANGES_EVERY_MS = 200;
const text = (words) => ({ content: [{ type: "text", text: words }] });
const ask = (request) => inputRequired({ inputRequests: { answer: request } });

function offerTools(server) {
  const numbers = { inputSchema: z.object({ a: z.number(), b: z.number() }) };
  server.registerTool("add", numbers, ({ a, b }) => text(String(a + b)));

  const lasting = { inputSchema: z.object({ seconds: z.number() }) };
  server.registerTool("slow", lasting, async ({ seconds }, { mcpReq }) => {
    mcpReq.signal.addEventListener("abort", () =>
      appendFileSync(process.env.CANCELLED, `${mcpReq.signal.reason}\n`),
    );
    const { progressToken } = mcpReq._meta ?? {};
    for (let progress = 0; progress < 10; progress++) {
      const params = { progressToken, progress, total: 10 };
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params });
      await pause(seconds * 100, undefined, { signal: mcpReq.signal });
    }
    return text(`It took ${seconds} s.`);
  });
}

// Each tool is called again with the answer: the SDK asks in mid-call where the era wants that.
function offerQuestions(server) {
  const answered = (context) => context.mcpReq.inputResponses?.answer;
  const asking = (name, request, said) =>
    server.registerTool(name, { inputSchema: z.object({}) }, (_, context) =>
      answered(context) ? text(said(answered(context))) : ask(request),
    );
  const name = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const prompt = { role: "user", content: { type: "text", text: "Which city?" } };
  asking(
    "ask_name",
    inputRequired.elicit({ mode: "form", message: "Who are you?", requestedSchema: name }),
    ({ content }) => `Hello, ${content.name}!`,
  );
  asking(
    "ask_model",
    inputRequired.createMessage({ messages: [prompt], maxTokens: 10 }),
    ({ content }) => `The model says ${content.text}.`,
  );
  asking("ask_roots", inputRequired.listRoots(), ({ roots }) =>
    roots.map(({ uri }) => uri).join(" "),
  );
}

function offerNotes(server) {
  const contents = (uri, words) => ({ contents: [{ uri: uri.href, text: words }] });
  server.registerResource("today", TODAY, {}, (uri) => contents(uri, "Buy milk."));
  const anyDay = new ResourceTemplate("notes://{day}/note", { list: undefined });
  server.registerResource("note", anyDay, {}, (uri, { day }) =>
    contents(uri, `The note of ${day}.`),
  );
  const argsSchema = z.object({ name: completable(z.string(), () => ["Ada"]) });
  server.registerPrompt("greet", { argsSchema }, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Please greet ${name}.` } }],
  }));
}

// Today's note changes all the time. Who has to hear of it is for the SDK to know in the modern
// era, and for us in the legacy one.
function offerChanges(server, era) {
  const subscribed = new Set();
  server.server.setRequestHandler("resources/subscribe", ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
  const tell = () => {
    if (era === "modern" || subscribed.has(TODAY))
      server.server.sendResourceUpdated({ uri: TODAY }).catch(() => {});
  };
  setInterval(tell, CHANGES_EVERY_MS).unref();
}

serveStdio(({ era }) => {
  const capabilities = { resources: { subscribe: true } };
  const server = new McpServer({ name: "notes", version: "1" }, { capabilities });
  for (const offer of [offerTools, offerQuestions, offerNotes]) offer(server);
  offerChanges(server, era);
  return server;
});
