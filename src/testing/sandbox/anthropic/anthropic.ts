import { randomUUID } from 'node:crypto'
import {
  type BatchItem,
  type BatchOutcome,
  type BatchRun,
  type BatchTimes,
  batchedCall,
  itemOperations,
  type VendorBatch,
  VendorBatches,
} from '../batches/vendor-batches.ts'
import { type ChatTurn, chatTurn, countTokens, words } from '../model/chat-turn.ts'
import { asList, asNumber, asObject, asText, type Fields, isGiven } from '../request-fields.ts'
import {
  type AnswerContext,
  credentialOf,
  eventText,
  fileReply,
  jsonReply,
  RefusedCall,
  type SandboxCall,
  type SandboxOperation,
  streamReply,
} from '../sandbox-operation.ts'
import {
  ANTHROPIC_ERRORS,
  ANTHROPIC_HEADERS,
  anthropicError,
  anthropicModelRules,
  anthropicOperation,
  checkAnthropicFields,
  checkAnthropicMessages,
  readMessagesPrompt,
  refuseAnthropic,
  thinkingSignature,
} from './anthropic-request.ts'

/** Anthropic: `POST /v1/messages`, whole and as a stream, with the threads of one sandbox. */
export function anthropicMessages(): SandboxOperation {
  const threads = new AnthropicThreads()
  return anthropicOperation({
    operation: 'chat',
    post: /^(?:\/anthropic)?\/v1\/messages$/,
    prompt: (request) => readMessagesPrompt(request).lastUserText,
    answer(call, given) {
      const { request, context, isThread } = threads.enter(call, given)
      if (asText(request['model']) === '') refuseAnthropic('model: Field required')
      if (!isGiven(request['max_tokens'])) refuseAnthropic('max_tokens: Field required')
      const maxTokens = asNumber(request['max_tokens']) ?? -1
      if (!Number.isInteger(maxTokens) || maxTokens < 0)
        refuseAnthropic('max_tokens: Input should be greater than or equal to 1')
      checkRequest(request, call)
      const turn = chatTurn(readMessagesPrompt(request), context)
      const message = wholeMessage(request, turn, context)
      if (isThread) threads.keep(request, message)
      if (request['stream'] !== true) return jsonReply(200, ANTHROPIC_HEADERS, message)
      const filler = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' more' } })
      return streamReply(ANTHROPIC_HEADERS, messageEvents(request, turn, context), filler)
    },
  })
}

/** Anthropic: `POST /v1/messages/count_tokens`. */
export const ANTHROPIC_COUNT_TOKENS = anthropicOperation({
  operation: 'count-tokens',
  post: /^(?:\/anthropic)?\/v1\/messages\/count_tokens$/,
  prompt: (request) => readMessagesPrompt(request).lastUserText,
  json(call, _context, request) {
    if (asText(request['model']) === '') refuseAnthropic('model: Field required')
    checkRequest(request, call)
    return { input_tokens: countTokens(readMessagesPrompt(request).texts) }
  },
})

function checkRequest(request: Fields, { headers }: SandboxCall): void {
  const hasBeta = (headers['anthropic-beta'] ?? '').trim() !== ''
  checkAnthropicFields(request, headers['anthropic-version'] ?? '', hasBeta)
  checkAnthropicMessages(request)
}

const SNAPSHOTS: Readonly<Record<string, string>> = {
  'claude-sonnet-4-5': '20250929',
  'claude-haiku-4-5': '20251001',
  'claude-opus-4-5': '20251101',
}

/** A content block of an answer, and the deltas in which a stream delivers it. */
interface AnswerBlock {
  readonly whole: Fields
  readonly start: Fields
  readonly deltas: readonly Fields[]
}

/** The whole answer. */
function wholeMessage(request: Fields, turn: ChatTurn, context: AnswerContext): Fields {
  return {
    ...messageHead(request, context),
    content: answerBlocks(request, turn, context).map((block) => block.whole),
    ...ending(turn),
    usage: context.usage(usageOf(turn)),
  }
}

/** The events of a streamed answer; the last one is `message_stop`. */
function messageEvents(request: Fields, turn: ChatTurn, context: AnswerContext): string[] {
  const { output_tokens: outputTokens, output_tokens_details: _, ...input } = usageOf(turn)
  const open = { content: [], stop_reason: null, stop_sequence: null, stop_details: null }
  const startUsage = context.usage({ ...input, output_tokens: 1 })
  return [
    event('message_start', { message: { ...messageHead(request, context), ...open, usage: startUsage } }),
    ...answerBlocks(request, turn, context).flatMap(({ start, deltas }, index) => [
      event('content_block_start', { index, content_block: start }),
      ...(index === 0 ? [event('ping', {})] : []),
      ...deltas.map((delta) => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', { delta: ending(turn), usage: context.usage({ ...input, output_tokens: outputTokens }) }),
    event('message_stop', {}),
  ]
}

/** One server-sent event; its line and its data have the name. */
function event(type: string, members: Fields): string {
  return eventText({ type, ...members }, type)
}

function messageHead(request: Fields, context: AnswerContext): Fields {
  const model = asText(request['model'])
  const snapshot = SNAPSHOTS[model]
  return {
    id: `msg_${context.id}`,
    type: 'message',
    role: 'assistant',
    model: snapshot === undefined ? model : `${model}-${snapshot}`,
  }
}

function answerBlocks(request: Fields, turn: ChatTurn, context: AnswerContext): AnswerBlock[] {
  const blocks: AnswerBlock[] = []
  if (turn.reasoning.length > 0) blocks.push(thinkingBlock(request, turn, context.id))
  if (turn.words.length > 0)
    blocks.push({
      whole: { type: 'text', text: turn.words.join('') },
      start: { type: 'text', text: '' },
      deltas: turn.words.map((text) => ({ type: 'text_delta', text })),
    })
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

function thinkingBlock(request: Fields, turn: ChatTurn, id: string): AnswerBlock {
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

const STOP_REASONS: Readonly<Record<ChatTurn['ending'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  blocked: 'refusal',
}

function ending(turn: ChatTurn): Fields {
  const refusal = { type: 'refusal', category: 'general_harms', explanation: 'The stand-in was instructed to refuse.' }
  return {
    stop_reason: STOP_REASONS[turn.ending],
    stop_sequence: turn.stopSequence ?? null,
    stop_details: turn.ending === 'blocked' ? refusal : null,
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

interface HeldThread {
  /** Members that a continuation gets from the thread and must not repeat. */
  readonly begun: Fields
  readonly messages: readonly unknown[]
  wasContinued: boolean
}

const BETA = 'message-threads-2026-08-12'
const MAX_HELD = 1_000

/**
 * Stores conversations (Anthropic SDK, "Message threads"): `create` begins one, and `continue` names the answer to continue, once.
 * `system` and `tools` are those of the first call.
 */
class AnthropicThreads {
  readonly #held = new Map<string, HeldThread>()
  #answers = 0

  /** Returns the request with all turns of its thread, unless it has none. */
  enter({ body, headers }: SandboxCall, context: AnswerContext) {
    const { thread, ...rest } = asObject(body)
    if (!isGiven(thread)) return { request: asObject(body), context, isThread: false }
    if (headers['anthropic-beta']?.includes(BETA) !== true) refuseAnthropic('thread: Extra inputs are not permitted')
    // Equal calls begin separate threads.
    const unique = { ...context, id: `${context.id}${this.#answers++}` }
    return { request: this.#wholeRequest(asObject(thread), rest), context: unique, isThread: true }
  }

  /** Stores a conversation under the id of its answer. */
  keep({ system, tools, messages }: Fields, { id, role, content }: Fields): void {
    const turns = [...asList(messages), { role, content }]
    this.#held.set(asText(id), { begun: { system, tools }, messages: turns, wasContinued: false })
    const [oldest] = this.#held.keys()
    if (this.#held.size > MAX_HELD && oldest !== undefined) this.#held.delete(oldest)
  }

  #wholeRequest({ type, previous_message_id: previousId }: Fields, rest: Fields): Fields {
    if (type === 'create') return rest
    if (type !== 'continue') refuseAnthropic("thread: Input tag does not match 'create' or 'continue'")
    const found = this.#held.get(asText(previousId))
    if (found === undefined) refuseThread(404, 'not_found_error', 'thread_not_found')
    if (found.wasContinued) refuseThread(400, 'invalid_request_error', 'thread_already_continued')
    const repeated = ['system', 'tools'].find((field) => isGiven(rest[field]))
    if (repeated !== undefined) refuseAnthropic(`${repeated}: a thread keeps what it was created with`)
    found.wasContinued = true
    return { ...rest, ...found.begun, messages: [...found.messages, ...asList(rest['messages'])] }
  }
}

function refuseThread(status: number, type: string, code: string): never {
  const error = { type, message: `The conversation cannot be continued (${code}).`, details: { error_code: code } }
  throw new RefusedCall(anthropicError(status, error))
}

type Batch = VendorBatch<null>

const ROOT = '/v1/messages/batches'
const CUSTOM_ID = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_REQUESTS = 100_000
const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Anthropic: `/v1/messages/batches`, with the batches of one sandbox (Anthropic API reference, "Message Batches"). Each request is
 * answered like a single call, and results are in another order than the requests.
 */
export function anthropicBatches(run: BatchRun, times: BatchTimes): SandboxOperation[] {
  const batches = new VendorBatches<null>(run, times)
  const found = (call: SandboxCall, id: string, nowMs: number): Batch => {
    const batch = batches.find(id, credentialOf(call), nowMs)
    if (batch === undefined)
      throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `No message batch with the id ${id} was found.`))
    return batch
  }
  const submit = anthropicOperation({
    operation: 'batches',
    post: ROOT,
    json(call, { nowMs }) {
      const id = `msgbatch_01${randomUUID().replaceAll('-', '').slice(0, 22)}`
      const items = checkedItems(call)
      const batch = { id, apiKey: credentialOf(call), facts: null, items, lifeMs: DAY_MS }
      return batchObject(batches.add(batch, nowMs), call)
    },
  })
  const results = anthropicOperation({
    operation: 'batch-results',
    get: /^\/v1\/messages\/batches\/([^/]+)\/results$/,
    answer(call, { nowMs }, _request, [id = '']) {
      const { endedMs, items, outcomes } = found(call, id, nowMs)
      if (endedMs === undefined)
        throw new RefusedCall(ANTHROPIC_ERRORS.status(404, `The message batch ${id} has no results yet.`))
      const lines = items.map(({ key }, index) => ({ custom_id: key, result: resultOf(outcomes[index]) }))
      // Newest first: their order says nothing.
      const text = lines.reverse().map((line) => `${JSON.stringify(line)}\n`)
      return fileReply('application/x-jsonl', text.join(''), ANTHROPIC_HEADERS)
    },
  })
  const others = itemOperations<Batch>({
    operation: anthropicOperation,
    name: 'batch',
    one: /^\/v1\/messages\/batches\/([^/]+)$/,
    found,
    shown: batchObject,
    list: {
      path: ROOT,
      query: ['after_id', 'limit', 20],
      items: (call, nowMs) => batches.list(credentialOf(call), nowMs),
      shown: (page, hasMore, call) => ({
        data: page.map((batch) => batchObject(batch, call)),
        has_more: hasMore,
        first_id: page[0]?.id ?? null,
        last_id: page.at(-1)?.id ?? null,
      }),
    },
    cancel: {
      path: /^\/v1\/messages\/batches\/([^/]+)\/cancel$/,
      cancel({ id, endedMs }, call, nowMs) {
        if (endedMs !== undefined) refuseAnthropic(`Batch ${id} cannot be canceled because it has already ended.`)
        batches.cancel(id, nowMs)
        return batchObject(found(call, id, nowMs), call)
      },
    },
    delete({ id, endedMs }) {
      if (endedMs === undefined) refuseAnthropic(`Batch ${id} cannot be deleted while it is being processed.`)
      batches.delete(id)
      return { id, type: 'message_batch_deleted' }
    },
  })
  return [submit, results, ...others]
}

function checkedItems(call: SandboxCall): BatchItem[] {
  const requests = asList(asObject(call.body)['requests'])
  if (requests.length === 0) refuseAnthropic('requests: List should have at least 1 item after validation, not 0')
  if (requests.length > MAX_REQUESTS)
    refuseAnthropic(`requests: List should have at most ${MAX_REQUESTS} items after validation, not ${requests.length}`)
  const keys = new Set<string>()
  return requests.map((request, index) => {
    const { custom_id: customId, params } = asObject(request)
    const key = asText(customId)
    if (!CUSTOM_ID.test(key))
      refuseAnthropic(`requests.${index}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
    if (keys.has(key)) refuseAnthropic(`requests.${index}.custom_id: Duplicate custom_id '${key}'`)
    keys.add(key)
    if (asObject(params)['stream'] === true)
      refuseAnthropic(`requests.${index}.params.stream: Not supported in a batch`)
    return { key, call: batchedCall('/v1/messages', params, call) }
  })
}

function resultOf(outcome: BatchOutcome | undefined) {
  if (outcome?.kind === 'canceled' || outcome?.kind === 'expired') return { type: outcome.kind }
  if (outcome?.kind === 'answered' && outcome.status === 200) return { type: 'succeeded', message: outcome.body }
  const body = outcome?.body ?? { type: 'error', error: { type: 'api_error', message: 'Internal server error' } }
  return { type: 'errored', error: body }
}

function batchObject(batch: Batch, { headers: { host } }: SandboxCall): object {
  const { id, items, outcomes, state, createdMs, expiresMs, canceledMs, endedMs } = batch
  const hasEnded = endedMs !== undefined
  // Outcomes are counted at the end only.
  const types = hasEnded ? items.map((_, index) => resultOf(outcomes[index]).type) : []
  const count = (type: string): number => types.filter((one) => one === type).length
  const origin = host === undefined ? 'https://api.anthropic.com' : `http://${host}`
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : state === 'canceling' ? 'canceling' : 'in_progress',
    request_counts: {
      processing: hasEnded ? 0 : items.length,
      succeeded: count('succeeded'),
      errored: count('errored'),
      canceled: count('canceled'),
      expired: count('expired'),
    },
    ended_at: timestamp(endedMs),
    created_at: timestamp(createdMs),
    expires_at: timestamp(expiresMs),
    archived_at: null,
    cancel_initiated_at: timestamp(canceledMs),
    results_url: hasEnded ? `${origin}${ROOT}/${id}/results` : null,
  }
}

function timestamp(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString()
}
