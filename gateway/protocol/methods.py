"""The methods we route, and what each names: data, not behaviour.

Source: schema/REVISION/schema.json, ClientRequest and ServerRequest.
"""

DISCOVER = "server/discover"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
UPDATED = "notifications/resources/updated"
PING = "ping"
SET_LEVEL = "logging/setLevel"
SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"

ROOTS_CHANGED = "notifications/roots/list_changed"
ELICITED = "notifications/elicitation/complete"

CALL_TOOL = "tools/call"
GET_PROMPT = "prompts/get"
READ_RESOURCE = "resources/read"
COMPLETE = "completion/complete"

LIST_TOOLS = "tools/list"
LIST_PROMPTS = "prompts/list"
LIST_RESOURCES = "resources/list"
LIST_TEMPLATES = "resources/templates/list"

NAMED_BY = {CALL_TOOL: "name", GET_PROMPT: "name", READ_RESOURCE: "uri"}
"""The member of params that says what a call is about."""

LIST_CHANGED = {
    "notifications/tools/list_changed": "tool",
    "notifications/prompts/list_changed": "prompt",
    "notifications/resources/list_changed": "resource",
}
"""Notification to the kind whose list should be read again."""
