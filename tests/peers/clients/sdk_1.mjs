// The TypeScript SDK 1.x. The environment variable SDK is the folder that holds it.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SDK, "package.json"));
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const types = await load("types.js");

const SCHEMAS = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
};

/** A client that gives these answers, by method, to whoever asks. */
export async function connect(url, capabilities, answers) {
  const client = new Client({ name: "steps", version: "1" }, { capabilities });
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(SCHEMAS[method], () => answer);
  }
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  return {
    client,
    version: transport.protocolVersion,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    subscribe: (uri, hear) => {
      client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) =>
        hear(params.uri),
      );
      return client.subscribeResource({ uri });
    },
  };
}
