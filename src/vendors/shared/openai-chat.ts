import { Buffer } from 'node:buffer'
import { exactJsonText } from '../../core/exact-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { asBuffer } from '../../wire/join-chunks.ts'
import { OPEN_BRACE } from '../../wire/json-cursor.ts'
import { ByteEdits, findKnownString, spliceText } from '../../wire/json-edits.ts'
import type { ChatOperation, VendorCall, WireRequest } from '../vendor.ts'
import { bearerHeaders } from './bearer-headers.ts'
import { collectedCall, collectedChat, isCollected, isEventStream } from './collected-chat.ts'
import { applyFieldRules } from './field-rules.ts'
import { brokenCompletion, openaiChatFromWire, passChatBody } from './openai-chat-answer.ts'
import { OpenAIChatDecoder } from './openai-chat-decoder.ts'
import { type OpenAIChatDialect, pathFor } from './openai-chat-dialect.ts'
import { OpenAIChatPassThrough } from './openai-chat-pass-through.ts'
import { heldState, restoredState } from './server-state.ts'
import { systemFirst } from './system-first.ts'
import { withoutModeration } from './without-moderation.ts'

const ASK_FOR_USAGE = Buffer.from('"stream_options":{"include_usage":true},')

/** Creates chat for a server with OpenAI's chat completions. Answers pass through to callers of the same dialect. */
export function openaiChat(dialect: OpenAIChatDialect): ChatOperation {
  const reasonsUnseen = ({ model, request }: VendorCall<ChatRequest>): boolean =>
    dialect.reasonsUnseen?.(model.upstream, request) === true
  return {
    reasonsUnseen,
    toWire: (call) => chatToWire(call, dialect),
    fromWire: (answer, call) =>
      isEventStream(answer)
        ? collectedChat([answer.body], call, dialect).read
        : openaiChatFromWire(answer, call, dialect),
    brokenAnswer: (answer, call) =>
      isEventStream(answer)
        ? collectedChat([answer.body], call, dialect).broken
        : brokenCompletion(answer.body, call, dialect),
    decoder: (call, writer) => new OpenAIChatDecoder(call, writer, dialect),
    ...(dialect.streamsOnly === undefined
      ? {}
      : {
          cutBytes: (chunks, call) =>
            isCollected(call, dialect) ? collectedChat(chunks, call, dialect).broken.outputBytes : undefined,
        }),
    ...(dialect.abilities === undefined ? {} : { abilities: dialect.abilities }),
    ...(dialect.takesImageUrls === false ? { takesImageUrls: () => false } : {}),
    ...(dialect.replaysReasoning === undefined
      ? {}
      : { replaysReasoning: ({ upstream }) => dialect.replaysReasoning?.(upstream) === true }),
    ...(dialect.takesCacheControl === undefined
      ? {}
      : { takesCacheControl: ({ upstream }) => dialect.takesCacheControl?.(upstream) === true }),
    passThrough: {
      applies: (call) => !isCollected(call, dialect),
      reasonsUnseen,
      fromWire: (chunks, call) => passChatBody(chunks, call, dialect),
      stream: (call) => new OpenAIChatPassThrough(call, dialect),
    },
  }
}

/**
 * Writes a chat request. The caller's own bytes are sent if possible: unchanged, or with the model id replaced and `include_usage`
 * added. Otherwise, the parsed request is serialized.
 */
function chatToWire(asked: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): WireRequest {
  // Callers of this dialect know the server. A translated conversation was written by a client of another one.
  const isTranslated = asked.bytes === undefined
  const given = isCollected(asked, dialect) ? collectedCall(asked) : asked
  const call = isTranslated && dialect.systemFirst === true ? withSystemFirst(given) : given
  if (call.request['moderation'] === undefined || dialect.moderates === true) return writtenChat(call, dialect)
  const { request, dropped } = withoutModeration(call.request)
  const wire = writtenChat({ ...call, request, bytes: undefined }, dialect)
  return { ...wire, dropped: [...dropped, ...wire.dropped] }
}

function withSystemFirst(call: VendorCall<ChatRequest>): VendorCall<ChatRequest> {
  const messages = systemFirst(call.request.messages) as ChatRequest['messages']
  return messages === call.request.messages ? call : { ...call, request: { ...call.request, messages } }
}

function writtenChat(call: VendorCall<ChatRequest>, dialect: OpenAIChatDialect): WireRequest {
  const held = call.bytes === undefined ? heldState(call.request.messages, call.model.vendor) : undefined
  const request = held === undefined ? call.request : { ...call.request, messages: held }
  const { body: ruled, dropped } = applyFieldRules(request, dialect.rulesFor(call.model.upstream))
  const { headers = bearerHeaders, asksForUsage = true } = dialect
  const edited =
    ruled === undefined && call.bytes !== undefined ? editedBytes(call, asBuffer(call.bytes), asksForUsage) : undefined
  return {
    path: pathFor(dialect.path, call.model.upstream),
    headers: headers(call.apiKey, call.stream ? 'text/event-stream' : 'application/json'),
    body:
      edited ?? exactJsonText(completed(writtenBody(ruled ?? { ...request }, held !== undefined), call, asksForUsage)),
    dropped,
  }
}

function writtenBody(body: Record<string, unknown>, holdsState: boolean): Record<string, unknown> {
  if (holdsState) body['messages'] = restoredState(body['messages'] as ChatRequest['messages'])
  return body
}

/** Members of a request that decide how its bytes change. */
interface StreamableRequest {
  readonly model: string
  readonly stream?: boolean | null
  readonly stream_options?: { readonly include_usage?: boolean | null } | null
}

/** Returns the caller's bytes with what must change, or `undefined` if it is not certain that they can be edited. */
export function editedBytes(
  call: VendorCall<StreamableRequest>,
  bytes: Buffer,
  asksForUsage: boolean,
): Buffer | undefined {
  const { request } = call
  if (call.stream !== (request.stream === true)) return undefined
  if (!asksForUsage && request.stream_options !== undefined) return undefined
  const asks = asksForUsage && call.stream && request.stream_options?.include_usage !== true
  if (asks && request.stream_options !== undefined) return undefined
  const span = findKnownString(bytes, ['model'], request.model)
  if (span === undefined) return undefined
  const isRenamed = request.model !== call.model.upstream
  const model = JSON.stringify(call.model.upstream)
  if (!asks) return isRenamed ? spliceText(bytes, span, model) : bytes
  const edits = new ByteEdits()
  const behindBrace = bytes.indexOf(OPEN_BRACE) + 1
  edits.replace(behindBrace, behindBrace, ASK_FOR_USAGE)
  if (isRenamed) edits.replace(span.start, span.end, Buffer.from(model))
  return edits.apply(bytes)
}

/** Sets what the gateway decides: the vendor's model id, and usage at the end of every stream. */
export function completed(
  body: Record<string, unknown>,
  call: VendorCall<StreamableRequest>,
  asksForUsage: boolean,
): Record<string, unknown> {
  body['model'] = call.model.upstream
  if (!asksForUsage) delete body['stream_options']
  if (call.stream) {
    body['stream'] = true
    if (asksForUsage) body['stream_options'] = { ...call.request.stream_options, include_usage: true }
  } else if (body['stream'] === true) {
    body['stream'] = false
  }
  return body
}
