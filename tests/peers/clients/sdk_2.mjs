// The TypeScript SDK 2.x. The environment variable SDK_2 is the folder that holds it.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SDK_2, "package.json"));
const { Client, StreamableHTTPClientTransport } = await import(
  pathToFileURL(require.resolve("@modelcontextprotocol/client"))
);

/** A client that gives these answers, by method; `mode` is legacy, auto or a modern revision. */
export async function connect(url, capabilities, answers, mode) {
  const versionNegotiation = { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } };
  const options = { capabilities, versionNegotiation };
  const client = new Client({ name: "steps", version: "1" }, options);
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(method, () => answer);
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    client,
    version: client.getNegotiatedProtocolVersion(),
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    subscribe: (uri, hear) => {
      client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
        hear(params.uri),
      );
      return client.getProtocolEra() === "modern"
        ? client.listen({ resourceSubscriptions: [uri] })
        : client.subscribeResource({ uri });
    },
  };
}
