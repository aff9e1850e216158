// Loaded before a server on the TypeScript SDK 1.x whose handlers do not look whether they are
// cancelled: writes down when the SDK itself aborts a call for `notifications/cancelled`. CANCELLED
// is the file.
import { appendFileSync } from "node:fs";

const { abort } = AbortController.prototype;
AbortController.prototype.abort = function (reason) {
  if (new Error().stack.includes("_oncancel")) {
    appendFileSync(process.env.CANCELLED, `${reason}\n`);
  }
  return abort.call(this, reason);
};
