import type { Attributes, Context, Span } from '@opentelemetry/api'
import type { ToolCallEnd, ToolCallFacts } from '../core/observer.ts'
import * as names from './names.ts'
import { type SpanSettings, toolCallOrigin } from './trace-context.ts'

/** Tool call, and the context of its requests. */
export interface ToolCallSpan {
  readonly span: Span
  readonly context: Context
}

/** Error code of calls to an unknown tool (JSON-RPC 2.0, "Error object"). */
const INVALID_PARAMS = '-32602'

/** Returns `undefined` if nobody records spans and no trace is continued. */
export function startToolCall(settings: SpanSettings, facts: ToolCallFacts): ToolCallSpan | undefined {
  const { api, tracer } = settings
  const { parent, links } = toolCallOrigin(settings, facts)
  const span = tracer.startSpan(
    facts.tool === undefined ? facts.method : `${facts.method} ${facts.tool}`,
    { kind: api.SpanKind.SERVER, startTime: facts.startedAtMs, attributes: attributesOf(facts), links },
    parent,
  )
  if (!api.trace.isSpanContextValid(span.spanContext())) return undefined
  return { span, context: api.trace.setSpan(parent, span) }
}

export function endToolCall({ api }: SpanSettings, { span }: ToolCallSpan, end: ToolCallEnd): void {
  const { outcome, code, endedAtMs } = end
  if (span.isRecording()) {
    span.setAttribute(names.ENDING, outcome)
    if (code !== undefined) span.setAttribute(names.ERROR_CODE, code)
    if (outcome === 'refused') span.setAttribute(names.RPC_STATUS_CODE, INVALID_PARAMS)
    const type = ERROR_TYPES[outcome]
    if (type !== undefined) span.setAttribute(names.ERROR_TYPE, type)
    // A disconnect is not an error. An error that the model reads is one, although the HTTP status is 200.
    if (outcome === 'failed' || outcome === 'refused') span.setStatus({ code: api.SpanStatusCode.ERROR })
  }
  span.end(endedAtMs)
}

const ERROR_TYPES: Readonly<Record<ToolCallEnd['outcome'], string | undefined>> = {
  completed: undefined,
  failed: 'tool_error',
  abandoned: 'client_closed_request',
  refused: INVALID_PARAMS,
}

function attributesOf(facts: ToolCallFacts): Attributes {
  const { tool, method, sessionId, protocolVersion, messageId, accountId, keyId } = facts
  const attributes: Attributes = {
    [names.MCP_METHOD]: method,
    [names.OPERATION_NAME]: 'execute_tool',
    [names.ACCOUNT_ID]: accountId,
    [names.KEY_ID]: keyId,
  }
  if (tool !== undefined) attributes[names.TOOL_NAME] = tool
  if (messageId !== undefined) attributes[names.RPC_REQUEST_ID] = messageId
  if (sessionId !== undefined) attributes[names.MCP_SESSION_ID] = sessionId
  if (protocolVersion !== undefined) attributes[names.MCP_PROTOCOL_VERSION] = protocolVersion
  return attributes
}
