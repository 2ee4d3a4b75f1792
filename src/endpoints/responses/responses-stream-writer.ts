import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { GatewayError } from '../../core/errors.ts'
import { objectOf, parseVendorJson } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { sseEvent } from '../../wire/sse.ts'
import { MAX_ANSWER_ITEMS } from '../answer-json.ts'
import type { ChatAnnotation, FinishReason } from '../chat/chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import { type AnswerEnd, type AnswerWriter, JsonTextEnd } from '../chat/chat-stream-writer.ts'
import { retryAfterOf } from '../error-dialect.ts'
import { type CallableTool, CUSTOM_INPUT, type ToolNames } from './chat-tools.ts'
import { type EnvelopeOwner, MESSAGE_STATE, type ReasoningState, sealReasoning } from './reasoning-envelope.ts'
import {
  type IncompleteReason,
  type OutputItem,
  type ResponseFacts,
  type ResponseStatus,
  responseObject,
  responseUsage,
  showsReasoning,
} from './response-object.ts'

/** Facts that a writer needs in addition to the answer. */
export interface WriterFacts extends ResponseFacts {
  readonly names: ToolNames
  readonly owner: EnvelopeOwner
  /** Whether the model reads the text of its reasoning in later turns. Default false. */
  readonly replaysReasoning?: boolean | undefined
}

/** Longest id of a call in the dialect. */
const MAX_CALL_ID_LENGTH = 64

/**
 * Writes neutral chat events as the events of a Responses stream (OpenAI API reference, "Streaming events"). The dialect has one
 * answer per request. Events after the finish are ignored.
 */
export class ResponsesStreamWriter implements AnswerWriter {
  /** Whether the written output contains something that a caller keeps. */
  hasContent = false
  /** Bytes of text, reasoning and arguments of tool calls so far, including those that are not shown. */
  outputBytesSeen = 0
  readonly #facts: WriterFacts
  readonly #output: OutputSequence
  #finish: FinishReason | undefined
  #hasBegun = false
  #sequenceNumber = 0
  #text = ''

  constructor(facts: WriterFacts) {
    this.#facts = facts
    const sequence = {
      responseId: facts.id,
      showsReasoning: showsReasoning(facts.request),
      carriesReasoning: facts.replaysReasoning === true,
      seal: (state: Parameters<typeof sealReasoning>[0]) => sealReasoning(state, facts.owner),
    }
    this.#output = new OutputSequence(
      sequence,
      (type, members) => this.#event(`response.${type}`, members),
      (type, place, delta, rest) => this.#delta(`response.${type}.delta`, place, delta, rest),
    )
  }

  /** Whether the answer has its finish reason. */
  get hasTextEnded(): boolean {
    return this.#finish !== undefined
  }

  /** Returns the text written since the last call, or an empty string. */
  take(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  /** Begins the stream, if it has not begun. */
  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const response = this.#response('in_progress', null)
    this.#event('response.created', { response })
    this.#event('response.in_progress', { response })
  }

  /** Ignores the vendor's id: clients send ids back, and the gateway could not find this one. */
  start(): void {
    this.begin()
  }

  text(text: string, choice = 0): void {
    if (text !== '' && this.#takes(choice, text)) this.#output.text(text)
  }

  annotations(annotations: readonly ChatAnnotation[], choice = 0): void {
    if (this.#takes(choice)) this.#output.annotations(annotations)
  }

  refusal(text: string, choice = 0): void {
    if (text !== '' && this.#takes(choice, text)) this.#output.text(text, 'refusal')
  }

  reasoning(text: string, choice = 0): void {
    if (text !== '' && this.#takes(choice, text, showsReasoning(this.#facts.request))) this.#output.reasoning(text)
  }

  thinkingBlock(block: ThinkingBlock, choice = 0): void {
    if (this.#takes(choice)) this.#output.thinkingBlock(block)
  }

  /** Keeps the state of a server. Other state is ignored: its vendors require only the state of calls. */
  extraContent(extra: ExtraContent, choice = 0): void {
    if (extra.server !== undefined && this.#takes(choice)) this.#output.state(extra)
  }

  toolCall(call: { index: number; id: string; name: string; extra?: ExtraContent }, choice = 0): void {
    if (!this.#takes(choice, call.name)) return
    const tool = this.#facts.names.toolOf(call.name)
    this.#output.call({ number: call.index, callId: this.#callId(call), tool, extra: call.extra })
  }

  toolCallArguments(index: number, json: string, choice = 0): void {
    if (json !== '' && this.#takes(choice, json)) this.#output.callJson(index, json)
  }

  finish(reason: FinishReason, choice = 0): void {
    if (this.#takes(choice)) this.#finish = reason
  }

  done(usage: Usage | undefined): Required<AnswerEnd> {
    if (this.#finish === undefined) this.finish('stop')
    const status = incompleteReason(this.#finish) === undefined ? 'completed' : 'incomplete'
    this.#output.finish(status === 'incomplete')
    const response = this.#response(status, usage)
    return { lastEvent: this.#written(`response.${status}`, { response }), response }
  }

  /** Returns bytes that keep a silent stream open, once it has begun. */
  keepAlive(): string {
    this.begin()
    return this.take() || keepAliveEvent(this.#sequenceNumber - 1)
  }

  /** Returns the end of a stream that broke. */
  fail(error: GatewayError): string {
    this.begin()
    const end = brokenStreamEnd(error, this.#response('failed', null), (type, members) => this.#written(type, members))
    return this.take() + end
  }

  #takes(choice: number, text = '', isShown = true): boolean {
    if (choice !== 0) return false
    this.begin()
    if (isShown) this.hasContent = true
    this.outputBytesSeen += Buffer.byteLength(text)
    return true
  }

  /** Returns the vendor's own id if it is short enough, else a hash, because it is returned twice. */
  #callId({ index, id }: { readonly index: number; readonly id: string }): string {
    if (id !== '' && id.length <= MAX_CALL_ID_LENGTH) return id
    const seed = id === '' ? `${this.#facts.id} ${index}` : id
    return `call_${createHash('sha256').update(seed).digest('hex').slice(0, 32)}`
  }

  #response(status: ResponseStatus, usage: Usage | undefined | null): Record<string, unknown> {
    return responseObject(this.#facts, {
      status,
      output: this.#output.items,
      usage: usage === null ? null : responseUsage(usage),
      incomplete: status === 'incomplete' ? incompleteReason(this.#finish) : undefined,
    })
  }

  /** Concatenated because most events are deltas, and building and stringifying an object costs three times as much. */
  #delta(type: string, place: string, delta: string, rest: string): void {
    const number = this.#sequenceNumber++
    this.#text += `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${place},"delta":${JSON.stringify(delta)}${rest}}\n\n`
  }

  #event(type: string, members: Record<string, unknown>): void {
    this.#text += this.#written(type, members)
  }

  #written(type: string, members: Record<string, unknown>): string {
    return sseEvent(type, JSON.stringify({ type, sequence_number: this.#sequenceNumber++, ...members }))
  }
}

function incompleteReason(reason: FinishReason | undefined): IncompleteReason | undefined {
  if (reason === 'length') return 'max_output_tokens'
  return reason === 'content_filter' ? 'content_filter' : undefined
}

/** Receives the events in order: the type without its prefix `response.`, and the other members of the data. */
export type EmitEvent = (type: string, members: Record<string, unknown>) => void

/**
 * Receives a delta event: its type without `response.` and `.delta`, the JSON of the members before the text, the text, and the
 * JSON after it.
 */
export type EmitDelta = (type: string, place: string, delta: string, rest: string) => void

/** Facts that a sequence needs in addition to its content. */
export interface SequenceFacts {
  /** Id of the response. Ids of its items are derived from it. */
  readonly responseId: string
  readonly showsReasoning: boolean
  /** Whether the text of reasoning is returned with the next turn. */
  readonly carriesReasoning: boolean
  /** Seals the state of a reasoning item. Returns `undefined` if it cannot be carried. */
  seal(state: ReasoningState): string | undefined
}

interface ReasoningDraft {
  readonly kind: 'reasoning'
  text: string
  blocks: ThinkingBlock[]
  calls: Record<string, ExtraContent>
  /** Whether the reasoning is signed, so that no text may follow. */
  isSigned: boolean
}

interface PartDraft {
  readonly type: 'output_text' | 'refusal'
  text: string
  /** Characters of the answer before this text. */
  readonly start: number
  readonly annotations: Record<string, unknown>[]
}

interface MessageDraft {
  readonly kind: 'message'
  readonly parts: PartDraft[]
}

interface CallDraft {
  readonly kind: 'call'
  readonly tool: CallableTool
  readonly callId: string
  json: string
  readonly end: JsonTextEnd
}

type Draft = ReasoningDraft | MessageDraft | CallDraft

const ID_PREFIXES = { reasoning: 'rs', message: 'msg', function: 'fc', custom: 'ctc', tool_search: 'tsc' } as const

/**
 * Writes the output of an answer as the items of a Responses stream (OpenAI API reference, "Streaming events"). It guarantees:
 * `output_index` counts from 0 without a gap, one item is open at a time, each item keeps its id, and done events contain the
 * objects of the final output. An item is opened only when it has content.
 *
 * Other vendors interleave content of separate items. The open call is written as it arrives; everything else waits until its
 * arguments are complete.
 */
class OutputSequence {
  /** The finished items. */
  readonly items: OutputItem[] = []
  readonly #emit: EmitEvent
  readonly #emitDelta: EmitDelta
  readonly #facts: SequenceFacts
  readonly #waiting: Draft[] = []
  readonly #calls = new Map<number, CallDraft>()
  #open: Draft | undefined
  #openId = ''
  /** Number of written parts of the open item, and the written length of the last one. */
  #partsWritten = 0
  /** Characters of the answer's text so far. */
  #textLength = 0
  /** Sources that arrived before the text. */
  readonly #early: ChatAnnotation[] = []

  constructor(facts: SequenceFacts, emit: EmitEvent, emitDelta: EmitDelta) {
    this.#facts = facts
    this.#emit = emit
    this.#emitDelta = emitDelta
  }

  text(text: string, type: 'output_text' | 'refusal' = 'output_text'): void {
    const last = this.#last
    const next = { type, text, start: this.#textLength, annotations: [] }
    if (type === 'output_text') this.#textLength += text.length
    if (last?.kind !== 'message') {
      this.#add({ kind: 'message', parts: [next] })
      this.annotations(this.#early.splice(0))
      return
    }
    const part = last.parts.at(-1)!
    if (part.type === type) part.text += text
    else last.parts.push(next)
    if (last !== this.#open) return
    if (part.type === type) this.#textDelta(part.type, text)
    else {
      this.#closePart(part)
      this.#openPart(last.parts.at(-1)!)
    }
  }

  /**
   * Adds sources to the latest text, or to the first one, with positions in the whole text. Omits sources of earlier text, which is
   * done, and repeated sources.
   */
  annotations(annotations: readonly ChatAnnotation[]): void {
    const last = this.#last
    const part = last?.kind === 'message' ? last.parts.at(-1) : undefined
    if (this.#textLength === 0) this.#early.push(...annotations)
    if (part?.type !== 'output_text') return
    for (const { type, url_citation: source } of annotations) {
      const start = source.start_index - part.start
      const isKnown = part.annotations.some((one) => one['url'] === source.url && one['start_index'] === start)
      if (start < 0 || isKnown) continue
      part.annotations.push({ type, ...source, start_index: start, end_index: source.end_index - part.start })
      if (last === this.#open) this.#annotation(part, part.annotations.length - 1)
    }
  }

  reasoning(text: string): void {
    const last = this.#last
    if (last?.kind !== 'reasoning' || last.isSigned) {
      this.#add({ kind: 'reasoning', text, blocks: [], calls: {}, isSigned: false })
      return
    }
    const isFirst = last.text === ''
    last.text += text
    if (last !== this.#open || !this.#facts.showsReasoning) return
    if (isFirst) this.#openSummary()
    this.#summaryDelta(text)
  }

  /** Writes a signed block whose text was already written. */
  thinkingBlock(block: ThinkingBlock): void {
    const draft = this.#reasoningToSign()
    draft.blocks.push(block)
    draft.isSigned = true
  }

  /** Keeps state of the message itself. */
  state(extra: ExtraContent): void {
    const draft = this.#reasoningToSign()
    draft.calls[MESSAGE_STATE] = extra
    draft.isSigned = true
  }

  /** Opens a call unless its number is already open. Its state goes into a reasoning item before it. */
  call(call: { number: number; callId: string; tool: CallableTool; extra: ExtraContent | undefined }): void {
    const { number, callId, tool, extra } = call
    if (this.#calls.has(number)) return
    if (extra !== undefined) {
      const draft = this.#reasoningToSign()
      draft.calls[callId] = extra
      draft.isSigned = true
    }
    const draft: CallDraft = { kind: 'call', tool, callId, json: '', end: new JsonTextEnd() }
    this.#calls.set(number, draft)
    this.#add(draft)
  }

  /** Writes a chunk of a call's arguments. Text after complete arguments is ignored. */
  callJson(number: number, json: string): void {
    const draft = this.#calls.get(number)
    if (draft === undefined || draft.end.isWhole) return
    // White space alone does not count as arguments.
    if (draft.json === '' && json.trim() === '') return
    draft.end.push(json)
    draft.json += json
    if (draft !== this.#open) return
    if (draft.tool.kind === 'function') this.#argumentsDelta(json)
    this.#advance()
  }

  /** Writes waiting output and closes the last item. A cut answer marks it and calls without all arguments as incomplete. */
  finish(isIncomplete: boolean): void {
    for (const draft of this.#waiting.splice(0)) {
      this.#close(isIncomplete && this.#open?.kind === 'call' && !this.#open.end.isWhole)
      this.#start(draft)
    }
    this.#close(isIncomplete)
  }

  get #last(): Draft | undefined {
    return this.#waiting.at(-1) ?? this.#open
  }

  #reasoningToSign(): ReasoningDraft {
    const last = this.#last
    if (last?.kind === 'reasoning' && !last.isSigned) return last
    const draft: ReasoningDraft = { kind: 'reasoning', text: '', blocks: [], calls: {}, isSigned: false }
    this.#add(draft)
    return draft
  }

  /** @throws RangeError if the answer has more items than {@link MAX_ANSWER_ITEMS}. Its last event repeats them all. */
  #add(draft: Draft): void {
    if (this.items.length + this.#waiting.length >= MAX_ANSWER_ITEMS)
      throw new RangeError(`the answer has more than ${MAX_ANSWER_ITEMS} items`)
    this.#waiting.push(draft)
    this.#advance()
  }

  #advance(): void {
    while (this.#waiting.length > 0 && (this.#open?.kind !== 'call' || this.#open.end.isWhole))
      this.#start(this.#waiting.shift()!)
  }

  #start(draft: Draft): void {
    this.#close(false)
    this.#open = draft
    this.#openId = this.#idOf(draft)
    this.#partsWritten = 0
    // Reasoning that is not shown becomes an item only if it has state, which is known when it ends.
    if (draft.kind === 'reasoning' && !this.#facts.showsReasoning) return
    this.#emit('output_item.added', { output_index: this.items.length, item: emptyItem(draft, this.#openId) })
    if (draft.kind === 'reasoning') {
      if (draft.text === '') return
      this.#openSummary()
      this.#summaryDelta(draft.text)
    } else if (draft.kind === 'message') {
      const [first, ...rest] = draft.parts
      this.#openPart(first!)
      for (const [index, part] of rest.entries()) {
        this.#closePart(draft.parts[index]!)
        this.#openPart(part)
      }
    } else if (draft.json !== '' && draft.tool.kind === 'function') this.#argumentsDelta(draft.json)
  }

  #close(isIncomplete: boolean): void {
    const draft = this.#open
    if (draft === undefined) return
    this.#open = undefined
    const place = this.#place
    const status = isIncomplete ? 'incomplete' : 'completed'
    if (draft.kind === 'reasoning') {
      const item = this.#reasoningItem(draft)
      if (item !== undefined) this.#done(item)
      return
    }
    if (draft.kind === 'message') {
      this.#closePart(draft.parts.at(-1)!)
      const content = draft.parts.map(finishedPart)
      this.#done({ type: 'message', id: this.#openId, role: 'assistant', status, content })
      return
    }
    const item = callItem(draft, this.#openId, status)
    if (draft.tool.kind === 'function') {
      if (draft.json === '') this.#argumentsDelta(String(item['arguments']))
      this.#emit('function_call_arguments.done', { ...place, arguments: item['arguments'], name: draft.tool.name })
    } else if (draft.tool.kind === 'custom') {
      this.#emit('custom_tool_call_input.delta', { ...place, delta: item['input'] })
      this.#emit('custom_tool_call_input.done', { ...place, input: item['input'] })
    }
    this.#done(item)
  }

  #done(item: OutputItem): void {
    this.#emit('output_item.done', { output_index: this.items.length, item })
    this.items.push(item)
  }

  #reasoningItem(draft: ReasoningDraft): OutputItem | undefined {
    const { text, blocks, calls } = draft
    const { showsReasoning: isShown, carriesReasoning } = this.#facts
    const state = {
      ...(blocks.length > 0 ? { blocks } : {}),
      // Shown text is not carried again. The empty text is for clients that return only items with encrypted content.
      ...(carriesReasoning && text !== '' ? { text: isShown ? '' : text } : {}),
      ...(Object.keys(calls).length > 0 ? { calls } : {}),
    }
    const content = Object.keys(state).length > 0 ? this.#facts.seal(state) : undefined
    if (!isShown && content === undefined) return undefined
    const summary = isShown && text !== '' ? [{ type: 'summary_text', text }] : []
    const id = this.#openId
    if (!isShown)
      this.#emit('output_item.added', { output_index: this.items.length, item: emptyItem(draft, this.#openId) })
    else if (text !== '') {
      const place = { ...this.#place, summary_index: 0 }
      this.#emit('reasoning_summary_text.done', { ...place, text })
      this.#emit('reasoning_summary_part.done', { ...place, part: summary[0] })
    }
    return { type: 'reasoning', id, summary, ...(content === undefined ? {} : { encrypted_content: content }) }
  }

  get #place(): { item_id: string; output_index: number } {
    return { item_id: this.#openId, output_index: this.items.length }
  }

  /** JSON of the place of an event. Ids need no escapes. */
  get #placeJson(): string {
    return `"item_id":"${this.#openId}","output_index":${this.items.length}`
  }

  #openSummary(): void {
    const part = { type: 'summary_text', text: '' }
    this.#emit('reasoning_summary_part.added', { ...this.#place, summary_index: 0, part })
  }

  #summaryDelta(delta: string): void {
    this.#emitDelta('reasoning_summary_text', `${this.#placeJson},"summary_index":0`, delta, '')
  }

  #argumentsDelta(delta: string): void {
    this.#emitDelta('function_call_arguments', this.#placeJson, delta, '')
  }

  #openPart(part: PartDraft): void {
    const empty = finishedPart({ ...part, text: '', annotations: [] })
    this.#emit('content_part.added', { ...this.#place, content_index: this.#partsWritten, part: empty })
    this.#textDelta(part.type, part.text)
    for (const index of part.annotations.keys()) this.#annotation(part, index)
  }

  #annotation({ annotations }: PartDraft, index: number): void {
    const place = { ...this.#place, content_index: this.#partsWritten, annotation_index: index }
    this.#emit('output_text.annotation.added', { ...place, annotation: annotations[index] })
  }

  #textDelta(type: 'output_text' | 'refusal', delta: string): void {
    const place = `${this.#placeJson},"content_index":${this.#partsWritten}`
    if (type === 'refusal') this.#emitDelta('refusal', place, delta, '')
    else this.#emitDelta('output_text', place, delta, ',"logprobs":[]')
  }

  #closePart(part: PartDraft): void {
    const place = { ...this.#place, content_index: this.#partsWritten }
    if (part.type === 'refusal') this.#emit('refusal.done', { ...place, refusal: part.text })
    else this.#emit('output_text.done', { ...place, text: part.text, logprobs: [] })
    this.#emit('content_part.done', { ...place, part: finishedPart(part) })
    this.#partsWritten += 1
  }

  #idOf(draft: Draft): string {
    const prefix = ID_PREFIXES[draft.kind === 'call' ? draft.tool.kind : draft.kind]
    const unique = this.#facts.responseId.slice(this.#facts.responseId.indexOf('_') + 1)
    return `${prefix}_${unique}${String(this.items.length).padStart(4, '0')}`
  }
}

function finishedPart({ type, text, annotations }: PartDraft): Record<string, unknown> {
  return type === 'refusal' ? { type, refusal: text } : { type, text, annotations: [...annotations], logprobs: [] }
}

function emptyItem(draft: Draft, id: string): OutputItem {
  if (draft.kind === 'reasoning') return { type: 'reasoning', id, summary: [], encrypted_content: null }
  if (draft.kind === 'message') return { type: 'message', id, role: 'assistant', status: 'in_progress', content: [] }
  return callItem({ ...draft, json: '' }, id, 'in_progress')
}

/** Returns a call in the form of its declared tool. Invalid arguments are kept as text if the item needs an object. */
function callItem({ tool, callId, json }: CallDraft, id: string, status: string): OutputItem {
  const head = { id, call_id: callId, status }
  const namespace = tool.namespace === undefined ? {} : { namespace: tool.namespace }
  const isOpen = status === 'in_progress'
  if (tool.kind === 'tool_search')
    return { type: 'tool_search_call', ...head, execution: 'client', arguments: objectOf(parseVendorJson(json)) }
  if (tool.kind === 'custom') {
    const input = objectOf(parseVendorJson(json))[CUSTOM_INPUT]
    return {
      type: 'custom_tool_call',
      ...head,
      name: tool.name,
      ...namespace,
      input: typeof input === 'string' ? input : json,
    }
  }
  const text = json === '' && !isOpen ? '{}' : json
  return { type: 'function_call', ...head, name: tool.name, ...namespace, arguments: text }
}

/** Type of the event that keeps a stream open. */
export const KEEP_ALIVE_TYPE = 'keepalive'

/**
 * Returns an event that clients of the dialect accept as activity. Comments do not keep all of them waiting.
 * @param lastNumber Number of the previous event, which it repeats: a client that resumes the stream after it misses nothing.
 */
export function keepAliveEvent(lastNumber: number): string {
  return sseEvent(KEEP_ALIVE_TYPE, JSON.stringify({ type: KEEP_ALIVE_TYPE, sequence_number: lastNumber }))
}

/** Codes that make coding clients stop retrying. They are passed on unchanged. */
const FINAL_CODES: ReadonlySet<string> = new Set(['context_length_exceeded', 'insufficient_quota', 'invalid_prompt'])

/** The code of a failed answer (OpenAI API reference, "The response object", error). */
function failureCode(error: GatewayError): string {
  if (FINAL_CODES.has(error.publicCode)) return error.publicCode
  if (error.status === 429) return RATE_LIMIT
  // Not `server_is_overloaded`, at which Codex ends the turn: it reconnects after `server_error`.
  return error.status < 500 ? 'invalid_prompt' : 'server_error'
}

const RATE_LIMIT = 'rate_limit_exceeded'

/** A stream has no `retry-after`: Codex reads "try again in Ns" in the message, with this code only. */
function withWait(error: GatewayError): string {
  if (error.retryAfterSeconds === undefined) return error.message
  return `${error.message.replace(/ Try again later\.$/, '')} Please try again in ${retryAfterOf(error)}s.`
}

/**
 * Returns the end of a stream that broke. Some clients read only the first of the two events, and some only the second.
 * @param response The response received so far.
 * @param write Numbers an event and writes it.
 */
export function brokenStreamEnd(
  error: GatewayError,
  response: Readonly<Record<string, unknown>>,
  write: (type: string, members: Record<string, unknown>) => string,
): string {
  const code = failureCode(error)
  const { type, param = null } = error
  const message = code === RATE_LIMIT ? withWait(error) : error.message
  const first = write('error', { code, message, param, error: { type, code, message, param } })
  const failed = { ...response, status: 'failed', error: { code, message } }
  return first + write('response.failed', { response: failed })
}
