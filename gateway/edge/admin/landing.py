"""The page at the admin address's root: what this is, and where things are."""

LANDING = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>onegate</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
  code { font-family: ui-monospace, monospace; }
  dt { margin-top: .8rem; }
</style>
<h1>onegate</h1>
<p>One gate for all your MCP servers. This is its admin address; MCP clients use the other one.</p>
<dl>
  <dt><a href="/healthz"><code>/healthz</code></a></dt><dd>The state of each server.</dd>
  <dt><a href="/readyz?verbose"><code>/readyz</code></a></dt>
  <dd>Whether it is ready to serve, and what is missing.</dd>
  <dt><a href="/livez"><code>/livez</code></a></dt><dd>Whether it answers at all.</dd>
  <dt><a href="/metrics"><code>/metrics</code></a></dt><dd>Numbers for Prometheus.</dd>
  <dt><a href="/api/servers"><code>/api/servers</code></a></dt><dd>Servers, in full.</dd>
  <dt><a href="/api/tools"><code>/api/tools</code></a></dt>
  <dd>Tools, with what the rules decide; <code>/api/explain?tool=NAME</code> says why.</dd>
  <dt><a href="/api/calls?last=50"><code>/api/calls</code></a></dt><dd>The latest calls.</dd>
</dl>
</html>
"""
