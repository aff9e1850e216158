// Loaded before a server on the TypeScript SDK 1.x whose handlers do not look whether they are
// cancelled: writes down what the SDK itself does about it. With a reason it aborts a call for
// `notifications/cancelled` alone. CANCELLED is the file.
import { appendFileSync } from "node:fs";

const { abort } = AbortController.prototype;
AbortController.prototype.abort = function (reason) {
  if (typeof reason === "string") appendFileSync(process.env.CANCELLED, `${reason}\n`);
  return abort.call(this, reason);
};
