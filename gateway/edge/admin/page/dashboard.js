// The dashboard: asks the admin address for JSON and draws it. Whatever comes from servers or
// clients is only ever set as text.

const SECOND = 1000;
const PATIENCE = 10 * SECOND; // longer, and what is on the page is not called live
const byId = (id) => document.getElementById(id);
const OUTCOMES = ["ok", "tool_error", "denied", "refused", "invalid", "throttled", "timeout",
  "cancelled", "unavailable", "server_error", "input_required", "crashed"];
const REFUSED = new Set(["denied", "refused", "invalid", "throttled"]);
const COLLECTIVE = new Set(["_unknown", "_other"]);
const FINE = new Set(["ok", "input_required", "cancelled"]);

// --- asking ---

class Unauthorized extends Error {}

async function ask(path) {
  const token = sessionStorage.getItem("onegate-token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, signal: AbortSignal.timeout(PATIENCE) });
  if (answer.status === 401) throw new Unauthorized();
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// --- building ---

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function cell(text, className, title) {
  const made = element("td", text, className);
  if (title) made.title = title;
  return made;
}

function wide(text) {
  // Two lines of it; the rest when it is pointed at or tabbed to.
  const made = element("td", null, "wide");
  if (text) {
    const inner = element("div", text);
    inner.tabIndex = 0;
    made.append(inner);
  }
  return made;
}

function number(value, className = "") {
  return cell(String(value), `n ${value ? className : "zero"}`);
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Number((value * 1000).toPrecision(2))} ms`;
  return `${Number(value.toPrecision(2))} s`;
}

const SVG = "http://www.w3.org/2000/svg";
function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function line(values, width, height, top, left = 0) {
  // Where nothing ran there is no value: the line breaks there.
  const step = (width - left) / Math.max(1, values.length - 1);
  let path = "";
  let pen = false;
  values.forEach((value, at) => {
    if (value === null) { pen = false; return; }
    const y = height - (value / top) * height;
    const lone = values[at + 1] === null || at === values.length - 1;
    path += `${pen ? "L" : "M"}${(left + at * step).toFixed(1)} ${y.toFixed(1)}`;
    if (!pen && lone) path += at === values.length - 1 ? "h-3" : "h3";
    pen = true;
  });
  return path;
}

function spark(values) {
  const top = Math.max(1, ...values);
  const svg = drawn("svg", { class: "spark", viewBox: "0 0 120 22", preserveAspectRatio: "none",
    role: "img", "aria-label": `at most ${top} calls a minute` });
  svg.append(drawn("path", { d: line(values, 120, 20, top) }));
  return svg;
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
}

function plot(title, lines, format) {
  const all = lines.flatMap((one) => one.values).filter((value) => value !== null);
  const top = nice(Math.max(...all, lines[0].least));
  const [width, height, left] = [480, 130, 48];
  const box = element("div", null, "plot");
  const svg = drawn("svg", { viewBox: `0 -10 ${width} ${height + 30}`, role: "img", "aria-label": title });
  for (const share of [0, 0.5, 1]) {
    const y = height - share * height;
    svg.append(drawn("line", { class: "grid", x1: left, x2: width, y1: y, y2: y }));
    svg.append(drawn("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, format(top * share)));
  }
  svg.append(drawn("text", { x: left, y: height + 16 }, "1 h ago"));
  svg.append(drawn("text", { x: width, y: height + 16, "text-anchor": "end" }, "now"));
  for (const one of lines) {
    svg.append(drawn("path", { class: one.look, d: line(one.values, width, height, top, left) }));
  }
  const legend = element("div", null, "legend");
  legend.append(element("span", title));
  for (const one of lines) legend.append(element("b", one.name, one.look));
  box.append(legend, svg);
  return box;
}

// --- showing ---

function say(id, text, className = "") {
  // Only what is new: a screen reader reads aloud whatever is set.
  const shown = byId(id);
  if (shown.textContent !== text) shown.textContent = text;
  shown.className = className;
}

function rowOf(key, ...cells) {
  const made = element("tr");
  made.dataset.key = key;
  made.append(...cells);
  return made;
}

function renew(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const hadFocus = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (hadFocus) fresh.querySelector("button, [tabindex]")?.focus({ preventScroll: true });
}

function put(body, rows) {
  // What has not changed stays, and with it the focus, what is selected, and what is read aloud.
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  const held = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  const kept = new Set(rows.map((row) => row.dataset.key));
  for (const [key, row] of held) if (!kept.has(key)) row.remove();
  let next = body.rows[0] ?? null;
  for (const fresh of rows) {
    const old = held.get(fresh.dataset.key);
    const row = old ?? fresh;
    if (old) {
      old.className = fresh.className;
      [...fresh.cells].forEach((cell, at) => renew(old.cells[at], cell));
    }
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next);
  }
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

let chosen = null;

// The process of a server's second era has a row of its own.
function withSecond(server) {
  const second = server.second;
  if (!second) return [server];
  const own = { name: `${server.name} (${second.era})`, eras: [second.era], in_flight: 0, waiting: 0 };
  return [server, { ...server, ...second, ...own }];
}

function showServers(servers) {
  const looks = { ready: "good", disabled: "", stopped: "", failed: "bad" };
  const trouble = (server) => Number(!["ready", "disabled"].includes(server.state));
  const rows = servers.flatMap(withSecond).sort((a, b) => trouble(b) - trouble(a));
  byId("no-servers").hidden = rows.length > 0;
  put(byId("servers").tBodies[0], rows.map((server) => rowOf(server.name,
      cell(server.name, "name", server.command.join(" ")),
      cell(server.state, `state ${looks[server.state] ?? "warn"}`, `since ${server.since ?? "the start"}`),
      cell(server.eras.join(", ") || "–"),
      number(server.tools), number(server.in_flight), number(server.waiting ?? 0, "warn"),
      number(server.parked ?? 0),
      number(server.restarts, "warn"),
      wide(server.last_error),
  )));
  const well = servers.filter((server) => server.state === "ready").length;
  const on = servers.filter((server) => server.state !== "disabled").length;
  say("health", `${well} of ${on} servers ready`);
}

function showTools(tools) {
  put(byId("tools").tBodies[0], tools.map((tool) => {
    const name = element("td", null, "name");
    const button = element("button", tool.name);
    button.title = `${tool.name}: show over time`;
    button.ariaPressed = String(tool.name === chosen);
    name.append(button);
    const sparkline = element("td");
    sparkline.append(spark(tool.recent));
    const share = tool.calls ? ` (${Math.round((100 * tool.failed) / tool.calls)} %)` : "";
    const failed = cell(tool.failed ? `${tool.failed}${share}` : "0", `n ${tool.failed ? "bad" : "zero"}`);
    return rowOf(tool.name, name, number(tool.calls), failed, number(tool.refused, "warn"),
      cell(seconds(tool.p50), "n"), cell(seconds(tool.p95), "n"), cell(seconds(tool.p99), "n"), sparkline);
  }));
}

byId("tools").tBodies[0].addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) soon(choose(button.textContent));
});

async function choose(name) {
  chosen = chosen === name ? null : name;
  for (const button of byId("tools").tBodies[0].querySelectorAll("button")) {
    button.ariaPressed = String(button.textContent === chosen);
  }
  await showPlot();
}

async function showPlot() {
  const figure = byId("plot");
  const name = chosen;
  figure.hidden = name === null;
  if (name === null) return;
  const series = await ask(`/api/series?tool=${encodeURIComponent(name)}`);
  if (name !== chosen) return; // another was chosen meanwhile
  figure.querySelector("figcaption").textContent = name;
  figure.querySelector(".plots").replaceChildren(
    plot("Calls a minute", [
      { name: "calls", look: "a", values: series.calls, least: 1 },
      { name: "failed", look: "c", values: series.failed },
    ], String),
    plot("Latency", [
      { name: "p50", look: "a", values: series.p50, least: 0.001 },
      { name: "p95", look: "b", values: series.p95 },
      { name: "p99", look: "c", values: series.p99 },
    ], seconds),
  );
}

function showCalls(calls) {
  byId("no-calls").hidden = calls.length > 0;
  const isFiltered = [...filters.elements].some((select) => select.value);
  say("no-calls", isFiltered ? "No such calls among the last 1000." : "No calls yet.", "none");
  put(byId("calls").tBodies[0], calls.slice().reverse().map((call) => {
    const look = FINE.has(call.outcome) ? "good" : REFUSED.has(call.outcome) ? "warn" : "bad";
    return rowOf(call.call,
      cell(new Date(call.ts).toLocaleTimeString(), "", call.ts),
      cell(call.name, "name", `${call.name}\n${call.server ?? "nobody"}: ${call.tool ?? "offers this"}`),
      cell(call.outcome, `state ${look}`), cell(seconds(call.duration_s), "n"),
      cell(call.principal ?? "–"), cell(call.client ?? "–"), cell(call.rule), wide(call.error),
    );
  }));
}

// --- filters, kept in the address so that a view can be shared ---

const filters = byId("filters");

function readFilters() {
  const held = new URLSearchParams(location.hash.slice(1));
  for (const select of filters.elements) {
    const value = held.get(select.name) ?? "";
    if (value && ![...select.options].some((option) => option.value === value)) {
      select.add(new Option(value, value));
    }
    select.value = value;
  }
}

function offer(select, values) {
  const known = new Set([...select.options].map((option) => option.value));
  for (const value of values) if (!known.has(value)) select.add(new Option(value, value));
}

filters.addEventListener("change", () => {
  const wanted = new URLSearchParams([...new FormData(filters)].filter(([, value]) => value));
  history.replaceState(null, "", `#${wanted}`);
  soon(refreshCalls());
});
addEventListener("hashchange", () => { readFilters(); soon(refreshCalls()); });

// --- the loop ---

function soon(work) {
  work.catch(() => {}); // the loop meets the same within a second, and says so
}

async function refreshCalls() {
  const wanted = new URLSearchParams([...new FormData(filters)].filter(([, value]) => value));
  showCalls((await ask(`/api/calls?last=100&${wanted}`)).calls);
}

async function refresh() {
  const [servers, totals] = await Promise.all([ask("/api/servers"), ask("/api/totals")]);
  showServers(servers.servers);
  showTools(totals.tools);
  offer(filters.elements.server, servers.servers.map((server) => server.name));
  // What stands for many has no calls of its own to show.
  const names = totals.tools.map((tool) => tool.name).filter((name) => !COLLECTIVE.has(name));
  offer(filters.elements.tool, names);
  await Promise.all([refreshCalls(), showPlot()]);
}

async function keepFresh() {
  try {
    await refresh();
    byId("login").hidden = true;
    byId("main").hidden = false;
    say("live", "live");
  } catch (error) {
    if (error instanceof Unauthorized) {
      logIn();
      return; // the form starts it again
    }
    say("live", "not live: the gateway does not answer", "bad");
    say("health", "The gateway does not answer", "bad");
  }
  setTimeout(keepFresh, document.hidden ? 10 * SECOND : SECOND);
}

function logIn() {
  const wasWrong = sessionStorage.getItem("onegate-token") !== null;
  sessionStorage.removeItem("onegate-token");
  byId("login").hidden = false;
  byId("main").hidden = true;
  say("health", "");
  say("wrong", wasWrong ? "That token is not known here." : "", "bad");
  byId("token").focus();
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("onegate-token", byId("token").value);
  byId("token").value = "";
  keepFresh();
});

offer(filters.elements.outcome, OUTCOMES);
readFilters();
keepFresh();
