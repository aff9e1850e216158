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

GET_TASK = "tasks/get"
CANCEL_TASK = "tasks/cancel"
UPDATE_TASK = "tasks/update"
"""Of the extension for 2026-07-28 alone."""
TASK_RESULT = "tasks/result"
LIST_TASKS = "tasks/list"
"""Of 2025-11-25 alone."""
TASK_STATUS = "notifications/tasks/status"
TASKS_TOLD = "notifications/tasks"
"""The same in 2025-11-25 and in the extension."""

LIST_TOOLS = "tools/list"
LIST_PROMPTS = "prompts/list"
LIST_RESOURCES = "resources/list"
LIST_TEMPLATES = "resources/templates/list"

NAMED_BY = {
    CALL_TOOL: "name",
    GET_PROMPT: "name",
    READ_RESOURCE: "uri",
    GET_TASK: "taskId",
    UPDATE_TASK: "taskId",
    CANCEL_TASK: "taskId",
}
"""The member of params that says what a request is about."""

LIST_CHANGED = {
    "notifications/tools/list_changed": "tool",
    "notifications/prompts/list_changed": "prompt",
    "notifications/resources/list_changed": "resource",
}
"""Notification to the kind whose list should be read again."""
