import { Buffer } from 'node:buffer'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { applyFieldRules } from './field-rules.ts'
import { asBuffer, replaceTopLevelString, spliceBytes } from './json-bytes.ts'
import type { OpenAIChatDialect } from './openai-chat-dialect.ts'

const ASK_FOR_USAGE = Buffer.from('"stream_options":{"include_usage":true},')

/**
 * Writes a chat request. The caller's own bytes are sent where they can be: as they are, or with the model id replaced
 * and the demand for usage put in. Otherwise the request is written again from its parsed form.
 */
export function openaiChatToWire(call: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): WireRequest {
  const { body: ruled, dropped } = applyFieldRules(call.request, dialect.rulesFor(call.model.upstream))
  const edited = ruled === undefined && call.bytes !== undefined ? editedBytes(call, asBuffer(call.bytes)) : undefined
  return {
    path: dialect.path,
    headers: bearerHeaders(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body: edited ?? JSON.stringify(completed(ruled ?? { ...call.request }, call)),
    dropped,
  }
}

/** The caller's bytes with what must change; undefined when splicing cannot be shown to do what is meant. */
function editedBytes(call: VendorCall<ChatRequest>, bytes: Buffer): Buffer | undefined {
  const { request } = call
  if (call.stream !== (request.stream === true)) return undefined
  const asks = call.stream && request.stream_options?.include_usage !== true
  if (asks && request.stream_options !== undefined) return undefined
  const renamed = replaceTopLevelString(bytes, 'model', request.model, call.model.upstream)
  if (renamed === undefined) return undefined
  if (!asks) return renamed
  const behindBrace = renamed.indexOf('{') + 1
  return spliceBytes(renamed, { start: behindBrace, end: behindBrace }, ASK_FOR_USAGE)
}

/** Sets what the gateway decides: the vendor's model id, and usage at the end of every stream. */
function completed(body: Record<string, unknown>, call: VendorCall<ChatRequest>): Record<string, unknown> {
  body['model'] = call.model.upstream
  if (call.stream) {
    body['stream'] = true
    body['stream_options'] = { ...call.request.stream_options, include_usage: true }
  } else if (body['stream'] === true) {
    body['stream'] = false
  }
  return body
}
