import { Buffer } from 'node:buffer'
import { GatewayError } from '../../core/errors.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import { CARRIED_MARK, isCarriedSignature } from '../../endpoints/messages/carried-state.ts'
import type { ContentBlock, MessageParam, MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import { isServerTool } from '../../endpoints/messages/messages-surcharges.ts'
import { requestTools } from '../../endpoints/messages/request-tools.ts'
import { asBuffer, joinChunks } from '../../wire/join-chunks.ts'
import { replaceString } from '../../wire/json-edits.ts'
import { modelAbilities } from '../shared/messages-abilities.ts'
import { thinksUnseen } from '../shared/messages-reasoning.ts'
import { usageFrom } from '../shared/messages-usage.ts'
import type { AnswerBody, MessagesOperation, VendorCall, WireRequest } from '../vendor.ts'
import { blockTextBytes } from './block-text-bytes.ts'
import { keyHeadersFor, type MessagesAddress } from './chat-to-wire.ts'
import { messagesStreamError } from './error-from.ts'
import { extraFeatures } from './extra-features.ts'
import { AutomaticMarks } from './marked-messages.ts'
import { MessagesPassThrough, threadIds } from './messages-pass-through.ts'
import { withPlainCallIds } from './plain-call-ids.ts'

/** Valid values of caller headers. Other headers, such as the choice of a workspace, are set by the operator. */
const PRINTABLE = /^[\t\x20-\x7e]*$/

/** Messages passed through in the vendor's own dialect (Anthropic, Messages reference and "Token counting"). */
export function messagesOperation(address: MessagesAddress, apiKeys: readonly string[]): MessagesOperation {
  const countAddress = { ...address, path: `${address.path}/count_tokens` }
  return {
    toWire: (call) => messagesToWire(call, address),
    fromWire: passMessage,
    answerHeaders: ['anthropic-version', 'anthropic-beta'],
    extraFeatures,
    reasonsUnseen: ({ model, request }) =>
      readsUnseen(request) ||
      thinksUnseen(
        modelAbilities(model.upstream),
        request.thinking?.type === 'disabled' ? 'none' : request.thinking?.type,
      ),
    stream: (call) => new MessagesPassThrough(call, (event) => messagesStreamError(event, apiKeys)),
    tokenCount: {
      toWire: (call) => messagesToWire(call, countAddress),
      fromWire: passTokenCount,
    },
  }
}

/** Tools of the vendor whose results the model reads within the call. */
const READING_TOOLS = ['web_search_', 'web_fetch_', 'code_execution_', 'advisor_'] as const

/** Whether tools of the vendor add texts to the prompt that only its report counts. */
function readsUnseen(request: MessagesRequest): boolean {
  const { mcp_servers: servers } = request
  if (Array.isArray(servers) && servers.length > 0) return true
  return requestTools(request).some((tool) => READING_TOOLS.some((prefix) => isServerTool(tool, prefix)))
}

/**
 * Sends a Messages request: the caller's own bytes with only `model` replaced, and the headers for version and features (Anthropic,
 * "API versioning" and "Beta headers"). Thinking blocks with another vendor's state are removed, because this vendor cannot verify
 * their signatures.
 * @throws GatewayError `invalid_request` for a header that cannot be passed on.
 */
function messagesToWire(call: VendorCall<MessagesRequest>, address: MessagesAddress): WireRequest {
  const version = callerHeader(call, 'anthropic-version') ?? address.version
  const beta = callerHeader(call, 'anthropic-beta')
  const marks = AutomaticMarks.for(call)
  const { own, dropped } = acceptedMessages(call)
  return {
    path: address.path,
    headers: [
      ...keyHeadersFor(address, call.apiKey),
      'anthropic-version',
      version,
      ...(beta === undefined ? [] : ['anthropic-beta', beta]),
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body:
      own === undefined
        ? editedBody(call, marks)
        : exactJsonText({ ...(marks?.inRequest(own) ?? own), model: call.model.upstream }),
    dropped,
  }
}

/** Returns the request with the messages that the API accepts, and the removed parts. */
export function acceptedMessages(call: VendorCall<MessagesRequest>): {
  /** `undefined` if the caller's own request can be sent. */
  readonly own: MessagesRequest | undefined
  readonly dropped: readonly string[]
} {
  const uncarried = withoutCarriedBlocks(call)
  const own = withPlainCallIds(uncarried ?? call.request)
  return {
    own: own === call.request ? undefined : own,
    dropped: uncarried === undefined ? [] : ['messages.thinking'],
  }
}

function editedBody(
  { bytes, request, model }: VendorCall<MessagesRequest>,
  marks: AutomaticMarks | undefined,
): Uint8Array | string {
  const named = bytes && replaceString(asBuffer(bytes), 'model', request.model, model.upstream)
  const edited = named === undefined || marks === undefined ? named : marks.inBytes(named)
  return edited ?? exactJsonText({ ...(marks?.inRequest(request) ?? request), model: model.upstream })
}

/** Returns a trimmed header of the caller, if any. @throws GatewayError `invalid_request` for characters that are not printable. */
export function callerHeader(call: VendorCall<MessagesRequest>, name: string): string | undefined {
  const value = call.header?.(name)?.trim()
  if (value === undefined || value === '') return undefined
  if (!PRINTABLE.test(value)) {
    throw new GatewayError('invalid_request', { message: `${name}: holds characters that no header may have` })
  }
  return value
}

/** Removes thinking with another vendor's state. Returns `undefined` if there is none. */
function withoutCarriedBlocks({ bytes, request }: VendorCall<MessagesRequest>): MessagesRequest | undefined {
  if (bytes !== undefined && !asBuffer(bytes).includes(CARRIED_MARK)) return undefined
  if (!request.messages.some((message) => blocksOf(message).some(isCarried))) return undefined
  const messages = request.messages.flatMap((message): MessageParam[] => {
    const blocks = blocksOf(message)
    if (!blocks.some(isCarried)) return [message]
    const content = blocks.filter((block) => !isCarried(block)) as ContentBlock[]
    return content.length === 0 ? [] : [{ ...message, content }]
  })
  return { ...request, messages }
}

function blocksOf({ content }: MessageParam): readonly unknown[] {
  return Array.isArray(content) ? content : []
}

function isCarried(block: unknown): boolean {
  return isJsonObject(block) && block['type'] === 'thinking' && isCarriedSignature(block['signature'])
}

/** Passes a whole message on with only the value of `model` replaced. Returns `undefined` if it is not a message. */
function passMessage(chunks: readonly Uint8Array[], call: VendorCall<MessagesRequest>): AnswerBody | undefined {
  const bytes = joinChunks(chunks)
  const message = parseAnswerJson(bytes.toString('utf8'))
  if (!isJsonObject(message) || message['type'] !== 'message' || !Array.isArray(message['content'])) return undefined
  const usage = usageFrom(message['usage'])
  const { publicModel, conversation } = call
  const renamed = replaceString(bytes, 'model', message['model'], publicModel)
  const outputBytes = message['content'].reduce<number>((sum, block) => sum + blockTextBytes(block), 0)
  return {
    chunks: [renamed ?? Buffer.from(JSON.stringify({ ...message, model: publicModel }))],
    usage,
    outputBytes,
    answerIds: conversation && threadIds(message),
  }
}

/** Passes a token count through. Returns `undefined` if there is none. */
function passTokenCount(chunks: readonly Uint8Array[]): AnswerBody | undefined {
  const count = parseVendorJson(joinChunks(chunks).toString('utf8'))
  return isJsonObject(count) && typeof count['input_tokens'] === 'number' ? { chunks, usage: undefined } : undefined
}
