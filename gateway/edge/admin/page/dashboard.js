// The dashboard: asks the admin address for JSON and draws it. Whatever comes from servers or
// clients is only ever set as text.

const SECOND = 1000;
const byId = (id) => document.getElementById(id);
const OUTCOMES = ["ok", "tool_error", "denied", "refused", "invalid", "throttled", "timeout",
  "cancelled", "unavailable", "server_error", "input_required", "crashed"];
const REFUSED = new Set(["denied", "refused", "invalid", "throttled"]);
const FINE = new Set(["ok", "input_required", "cancelled"]);

// --- asking ---

class Unauthorized extends Error {}

async function ask(path) {
  const token = sessionStorage.getItem("onegate-token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers });
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
  byId("servers").tBodies[0].replaceChildren(...servers.flatMap(withSecond).map((server) => {
    const row = element("tr");
    row.append(
      cell(server.name, "name", server.command.join(" ")),
      cell(server.state, `state ${looks[server.state] ?? "warn"}`, `since ${server.since ?? "the start"}`),
      cell(server.eras.join(", ") || "–"),
      number(server.tools), number(server.in_flight), number(server.waiting ?? 0, "warn"),
      number(server.parked ?? 0),
      number(server.restarts, "warn"),
      wide(server.last_error),
    );
    return row;
  }));
  const well = servers.filter((server) => server.state === "ready").length;
  const on = servers.filter((server) => server.state !== "disabled").length;
  byId("health").textContent = `${well} of ${on} servers ready`;
}

function showTools(tools) {
  byId("tools").tBodies[0].replaceChildren(...tools.map((tool) => {
    const row = element("tr");
    row.setAttribute("aria-selected", String(tool.name === chosen));
    const name = element("td", null, "name");
    const button = element("button", tool.name);
    button.title = "Show over time";
    button.addEventListener("click", () => choose(tool.name));
    name.append(button);
    const sparkline = element("td");
    sparkline.append(spark(tool.recent));
    const share = tool.calls ? ` (${Math.round((100 * tool.failed) / tool.calls)} %)` : "";
    const failed = cell(tool.failed ? `${tool.failed}${share}` : "0", `n ${tool.failed ? "bad" : "zero"}`);
    row.append(name, number(tool.calls), failed, number(tool.refused, "warn"),
      cell(seconds(tool.p50), "n"), cell(seconds(tool.p95), "n"), cell(seconds(tool.p99), "n"), sparkline);
    return row;
  }));
}

async function choose(name) {
  chosen = chosen === name ? null : name;
  await showPlot();
  for (const row of byId("tools").tBodies[0].rows) {
    row.setAttribute("aria-selected", String(row.querySelector("button").textContent === chosen));
  }
}

async function showPlot() {
  const figure = byId("plot");
  figure.hidden = chosen === null;
  if (chosen === null) return;
  const series = await ask(`/api/series?tool=${encodeURIComponent(chosen)}`);
  figure.querySelector("figcaption").textContent = chosen;
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
  byId("calls").tBodies[0].replaceChildren(...calls.slice().reverse().map((call) => {
    const row = element("tr");
    const look = FINE.has(call.outcome) ? "good" : REFUSED.has(call.outcome) ? "warn" : "bad";
    row.append(
      cell(new Date(call.ts).toLocaleTimeString(), "", call.ts),
      cell(call.name, "name", `${call.server ?? "nobody"}: ${call.tool ?? "offers this"}`),
      cell(call.outcome, `state ${look}`), cell(seconds(call.duration_s), "n"),
      cell(call.principal ?? "–"), cell(call.client ?? "–"), cell(call.rule), wide(call.error),
    );
    return row;
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
  refreshCalls();
});
addEventListener("hashchange", () => { readFilters(); refreshCalls(); });

// --- the loop ---

async function refreshCalls() {
  const wanted = new URLSearchParams([...new FormData(filters)].filter(([, value]) => value));
  showCalls((await ask(`/api/calls?last=100&${wanted}`)).calls);
}

async function refresh() {
  const [servers, totals] = await Promise.all([ask("/api/servers"), ask("/api/totals")]);
  showServers(servers.servers);
  showTools(totals.tools);
  offer(filters.elements.server, servers.servers.map((server) => server.name));
  offer(filters.elements.tool, totals.tools.map((tool) => tool.name));
  await Promise.all([refreshCalls(), showPlot()]);
}

async function keepFresh() {
  try {
    await refresh();
    byId("login").hidden = true;
    byId("main").hidden = false;
    byId("live").textContent = "live";
  } catch (error) {
    if (error instanceof Unauthorized) {
      byId("login").hidden = false;
      byId("main").hidden = true;
      byId("health").textContent = "";
      return; // the form starts it again
    }
    byId("live").textContent = "not live: the gateway does not answer";
    byId("health").textContent = "The gateway does not answer";
  }
  setTimeout(keepFresh, document.hidden ? 10 * SECOND : SECOND);
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
