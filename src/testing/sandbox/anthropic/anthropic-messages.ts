import { type ChatTurn, chatTurn, countTokens, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  streamReply,
} from '../sandbox-operation.ts'
import { checkAnthropicFields, checkAnthropicMessages } from './anthropic-checks.ts'
import {
  ANTHROPIC_ERRORS,
  ANTHROPIC_HEADERS,
  anthropicModelRules,
  readMessagesPrompt,
  refuseAnthropic,
  thinkingSignature,
} from './anthropic-request.ts'

const VERSIONS = ['2023-06-01', '2026-10-21']

/** Anthropic: `POST /v1/messages`, whole and as a stream, with the threads of one sandbox. */
export function anthropicMessages(): SandboxOperation {
  const threads = anthropicThreads()
  return {
    vendor: 'anthropic',
    operation: 'chat',
    errors: ANTHROPIC_ERRORS,
    matches: ({ method, path }) => method === 'POST' && /^(?:\/anthropic)?\/v1\/messages$/.test(path),
    promptText: (body) => readMessagesPrompt(body).lastUserText,
    answer(received, given) {
      checkHeaders(received)
      const { call, context, keep } = threads.enter(received, given)
      const request = asObject(call.body)
      if (asText(request['model']) === '') refuseAnthropic('model: Field required')
      if (!isGiven(request['max_tokens'])) refuseAnthropic('max_tokens: Field required')
      const maxTokens = asNumber(request['max_tokens']) ?? -1
      if (!Number.isInteger(maxTokens) || maxTokens < 0)
        refuseAnthropic('max_tokens: Input should be greater than or equal to 1')
      checkRequest(call)
      const turn = chatTurn(readMessagesPrompt(call.body), context)
      const message = wholeMessage(call.body, turn, context)
      keep(message)
      if (request['stream'] !== true) return jsonReply(200, ANTHROPIC_HEADERS, message)
      const filler = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' more' } })
      return streamReply(ANTHROPIC_HEADERS, messageEvents(call.body, turn, context), filler)
    },
  }
}

/** Anthropic: `POST /v1/messages/count_tokens`. */
export const ANTHROPIC_COUNT_TOKENS: SandboxOperation = {
  vendor: 'anthropic',
  operation: 'count-tokens',
  errors: ANTHROPIC_ERRORS,
  matches: ({ method, path }) => method === 'POST' && /^(?:\/anthropic)?\/v1\/messages\/count_tokens$/.test(path),
  promptText: (body) => readMessagesPrompt(body).lastUserText,
  answer(call) {
    checkHeaders(call)
    if (asText(asObject(call.body)['model']) === '') refuseAnthropic('model: Field required')
    checkRequest(call)
    return jsonReply(200, ANTHROPIC_HEADERS, { input_tokens: countTokens(readMessagesPrompt(call.body).texts) })
  },
}

/** The key, in either header, and the version of the API. */
export function checkHeaders(call: SandboxCall): void {
  if (credentialOf(call) === '') throw new RefusedCall(ANTHROPIC_ERRORS.status(401, 'x-api-key header is required'))
  const version = call.headers['anthropic-version']
  if (version === undefined) refuseAnthropic('anthropic-version: header is required')
  if (!VERSIONS.includes(version)) refuseAnthropic(`anthropic-version: "${version}" is not a valid version`)
}

function checkRequest(call: SandboxCall): void {
  const request = asObject(call.body)
  const hasBeta = (call.headers['anthropic-beta'] ?? '').trim() !== ''
  checkAnthropicFields(request, { version: call.headers['anthropic-version'] ?? '', hasBeta })
  checkAnthropicMessages(request)
}

type Json = Record<string, unknown>

const SNAPSHOTS: Readonly<Record<string, string>> = {
  'claude-sonnet-4-5': '20250929',
  'claude-haiku-4-5': '20251001',
  'claude-opus-4-5': '20251101',
}

/** A content block of an answer, and the deltas in which a stream delivers it. */
interface AnswerBlock {
  readonly whole: Json
  readonly start: Json
  readonly deltas: readonly Json[]
}

/** The whole answer. */
export function wholeMessage(body: unknown, turn: ChatTurn, context: AnswerContext): Json {
  return {
    ...messageHead(body, context),
    content: answerBlocks(body, turn, context).map((block) => block.whole),
    ...ending(turn),
    usage: context.usage(usageOf(turn)),
  }
}

/** The events of a streamed answer; the last one is `message_stop`. */
export function messageEvents(body: unknown, turn: ChatTurn, context: AnswerContext): string[] {
  const { output_tokens: outputTokens, output_tokens_details: _, ...input } = usageOf(turn)
  const begun = {
    ...messageHead(body, context),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
  }
  const startUsage = context.usage({ ...input, output_tokens: 1 })
  const events = [
    event('message_start', { message: { ...begun, ...(startUsage === undefined ? {} : { usage: startUsage }) } }),
  ]
  answerBlocks(body, turn, context).forEach((block, index) => {
    events.push(event('content_block_start', { index, content_block: block.start }))
    if (index === 0) events.push(event('ping', {}))
    events.push(...block.deltas.map((delta) => event('content_block_delta', { index, delta })))
    events.push(event('content_block_stop', { index }))
  })
  const usage = context.usage({ ...input, output_tokens: outputTokens })
  events.push(event('message_delta', { delta: ending(turn), ...(usage === undefined ? {} : { usage }) }))
  return [...events, event('message_stop', {})]
}

/** One server-sent event; its line and its data have the name. */
export function event(type: string, members: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
}

function messageHead(body: unknown, context: AnswerContext): Json {
  const model = asText(asObject(body)['model'])
  const snapshot = SNAPSHOTS[model]
  return {
    id: `msg_${context.id}`,
    type: 'message',
    role: 'assistant',
    model: snapshot === undefined ? model : `${model}-${snapshot}`,
  }
}

function answerBlocks(body: unknown, turn: ChatTurn, context: AnswerContext): AnswerBlock[] {
  const blocks: AnswerBlock[] = []
  if (turn.reasoning.length > 0) blocks.push(thinkingBlock(body, turn, context.id))
  if (turn.words.length > 0) {
    blocks.push({
      whole: { type: 'text', text: turn.words.join('') },
      start: { type: 'text', text: '' },
      deltas: turn.words.map((text) => ({ type: 'text_delta', text })),
    })
  }
  turn.toolCalls.forEach((call, index) => {
    const head = { type: 'tool_use', id: `toolu_${context.id}${index}`, name: call.name }
    const pieces = Object.keys(call.arguments).length === 0 ? [] : words(JSON.stringify(call.arguments))
    blocks.push({
      whole: { ...head, input: call.arguments },
      start: { ...head, input: {} },
      // The first chunk is empty; a call without arguments has no other.
      deltas: ['', ...pieces].map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
    })
  })
  return blocks
}

function thinkingBlock(body: unknown, turn: ChatTurn, id: string): AnswerBlock {
  const request = asObject(body)
  const display = asObject(request['thinking'])['display']
  const isHidden = isGiven(display)
    ? display === 'omitted'
    : anthropicModelRules(asText(request['model'])).hidesThinking
  const thoughts = isHidden ? [] : turn.reasoning
  const signature = thinkingSignature(id)
  return {
    whole: { type: 'thinking', thinking: thoughts.join(''), signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...thoughts.map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature },
    ],
  }
}

function ending(turn: ChatTurn): Json {
  const refusal = { type: 'refusal', category: 'general_harms', explanation: 'The stand-in was instructed to refuse.' }
  return {
    stop_reason: stopReason(turn),
    stop_sequence: turn.stopSequence ?? null,
    stop_details: turn.ending === 'blocked' ? refusal : null,
  }
}

function stopReason(turn: ChatTurn): string {
  switch (turn.ending) {
    case 'stop':
      return 'end_turn'
    case 'length':
      return 'max_tokens'
    case 'stop-sequence':
      return 'stop_sequence'
    case 'tool-calls':
      return 'tool_use'
    case 'blocked':
      return 'refusal'
  }
}

/** Anthropic's input count excludes tokens read from or written to the cache. */
function usageOf({ usage }: ChatTurn) {
  return {
    input_tokens: usage.prompt - usage.cached - usage.cacheWrite,
    cache_creation_input_tokens: usage.cacheWrite,
    cache_read_input_tokens: usage.cached,
    cache_creation: { ephemeral_5m_input_tokens: usage.cacheWrite, ephemeral_1h_input_tokens: 0 },
    output_tokens: usage.completion,
    output_tokens_details: { thinking_tokens: usage.reasoning },
    service_tier: 'standard',
  }
}

type ThreadJson = Readonly<Record<string, unknown>>

/** A call whose body contains all turns of its thread, and a function that stores its answer. */
export interface ThreadedCall {
  readonly call: SandboxCall
  readonly context: AnswerContext
  /** Stores the conversation under the id of its answer. */
  keep(message: ThreadJson): void
}

/** The threads of one sandbox. */
export interface AnthropicThreads {
  /** @throws RefusedCall for a thread that is unknown, or was continued before. */
  enter(call: SandboxCall, context: AnswerContext): ThreadedCall
}

interface HeldThread {
  /** Members that a continuation gets from the thread and must not repeat. */
  readonly begun: ThreadJson
  readonly messages: readonly unknown[]
  wasContinued: boolean
}

const BETA = 'message-threads-2026-08-12'
const MAX_HELD = 1_000

/**
 * Stores conversations (Anthropic SDK, "Message threads"): `create` begins one, and `continue` names the answer to continue, once.
 * `system` and `tools` are those of the first call.
 */
function anthropicThreads(): AnthropicThreads {
  const held = new Map<string, HeldThread>()
  let answers = 0
  return {
    enter(call, context) {
      const request = asObject(call.body)
      if (!isGiven(request['thread'])) return { call, context, keep: () => undefined }
      if (call.headers['anthropic-beta']?.includes(BETA) !== true)
        refuseAnthropic('thread: Extra inputs are not permitted')
      const { thread, ...rest } = request
      const body = wholeBody(asObject(thread), rest, held)
      // Equal calls begin separate threads.
      const unique = { ...context, id: `${context.id}${answers++}` }
      return {
        call: { ...call, body },
        context: unique,
        keep({ id, role, content }) {
          const { system, tools, messages } = body
          const turns = [...asList(messages), { role, content }]
          held.set(asText(id), { begun: { system, tools }, messages: turns, wasContinued: false })
          const [oldest] = held.keys()
          if (held.size > MAX_HELD && oldest !== undefined) held.delete(oldest)
        },
      }
    },
  }
}

function wholeBody(thread: ThreadJson, rest: ThreadJson, held: ReadonlyMap<string, HeldThread>): ThreadJson {
  if (thread['type'] === 'create') return rest
  if (thread['type'] !== 'continue') refuseAnthropic("thread: Input tag does not match 'create' or 'continue'")
  const found = held.get(asText(thread['previous_message_id']))
  if (found === undefined) refuseThread(404, 'not_found_error', 'thread_not_found')
  if (found.wasContinued) refuseThread(400, 'invalid_request_error', 'thread_already_continued')
  for (const field of ['system', 'tools'])
    if (isGiven(rest[field])) refuseAnthropic(`${field}: a thread keeps what it was created with`)
  found.wasContinued = true
  return { ...rest, ...found.begun, messages: [...found.messages, ...asList(rest['messages'])] }
}

function refuseThread(status: number, type: string, code: string): never {
  const error = { type, message: `The conversation cannot be continued (${code}).`, details: { error_code: code } }
  throw new RefusedCall(jsonReply(status, ANTHROPIC_HEADERS, { type: 'error', error, request_id: 'req_011sandbox' }))
}
