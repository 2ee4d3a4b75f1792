import { Buffer } from 'node:buffer'
import { isJsonObject, objectOf } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import type { ArgumentsMember } from '../../endpoints/answer-json.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import { chatUsage, type FinishReason } from '../../endpoints/chat/chat-completion.ts'
import { messageTextBytes } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
import type { JsonPath, KnownEvents } from '../../wire/event-template.ts'
import type { ByteSpan } from '../../wire/json-cursor.ts'
import { SSE_DONE, sseData } from '../../wire/sse.ts'
import type { VendorCall } from '../vendor.ts'
import {
  chunkUsage,
  endReason,
  openaiFinishReason,
  openaiUsage,
  shownUsage,
  usageAsMarked,
} from './openai-chat-answer.ts'
import {
  failedChoice,
  isErrorEnvelope,
  markedCacheTime,
  mendContentParts,
  type OpenAIChatDialect,
} from './openai-chat-dialect.ts'
import { answerMark, type LocatedPiece, StreamedToolCalls } from './streamed-tool-calls.ts'
import { usageAtTier, usedTier } from './vendor-cost.ts'

const DONE = Buffer.from(SSE_DONE)

/**
 * Passes a streamed chat of OpenAI's dialect through, event by event, with the model id replaced. Chunks that only
 * continue a text like an earlier one are not parsed. It guarantees more than vendors do: a choice in every chunk except the usage
 * chunk, a delta in every choice, a role in its first one, content as text, tool calls that clients can assemble, one of the
 * dialect's finish reasons in every choice, usage only if requested, one `[DONE]`, no error events, and no `[DONE]` after an
 * incomplete answer.
 */
export class OpenAIChatPassThrough extends PassThroughStream<KnownChunk> {
  protected override readonly argumentsMember: ArgumentsMember = 'arguments'
  usage: Usage | undefined
  serviceTier: string | undefined
  readonly #dialect: OpenAIChatDialect
  readonly #repair: ((chunk: Record<string, unknown>) => boolean) | undefined
  readonly #repairsCallsOnly: boolean
  readonly #wantsUsage: boolean
  readonly #costOf: VendorCall<ChatRequest>['costOf']
  readonly #billedUsage: VendorCall<ChatRequest>['billedUsage']
  readonly #isBilled: boolean | undefined
  readonly #cacheTime: CacheTime
  readonly #askedTier: unknown
  readonly #nowMs: number
  readonly #publicModel: string
  readonly #publicModelJson: Buffer
  readonly #choices: StreamedChoices
  // Values of the first chunk with a choice, for a chunk that the gateway creates.
  #id: unknown
  #created: unknown
  /** Usage chunk that arrived before the ends of all choices. Clients expect it after them. */
  #usageChunk: Buffer | undefined

  constructor(call: VendorCall<ChatRequest>, dialect: OpenAIChatDialect, maxEventBytes?: number) {
    super(maxEventBytes)
    this.#dialect = dialect
    this.#repair = dialect.answerRepair?.chunks()
    this.#repairsCallsOnly = dialect.answerRepair?.isOfToolCalls === true
    this.#wantsUsage = call.request.stream_options?.include_usage === true
    this.#costOf = call.costOf
    this.#billedUsage = call.billedUsage
    this.#isBilled = call.isBilled
    this.#cacheTime = markedCacheTime(call, dialect)
    this.#askedTier = call.request['service_tier']
    this.#nowMs = call.nowMs
    this.#publicModel = call.publicModel
    this.#publicModelJson = jsonBytes(call.publicModel)
    this.#choices = new StreamedChoices(call.request.n ?? 1, dialect.repairsToolCalls)
  }

  override get hasTextEnded(): boolean {
    return this.#choices.haveReasons
  }

  protected override bodyEnded(): Buffer | undefined {
    if (!this.#choices.haveReasons) return undefined
    // Every choice has a finish reason and the body ended cleanly, so the answer is complete without the end mark.
    this.finish()
    return this.#ending()
  }

  protected override get readsKnown(): boolean {
    return this.#choices.haveBegun
  }

  protected override readKnown(known: KnownEvents<KnownChunk>, { model, isCall }: KnownChunk, start: number): boolean {
    if (isCall && this.#readsCalls) return false
    this.countContent(known.textBytes)
    this.edit(start + model.start, start + model.end, this.#publicModelJson)
    return true
  }

  protected override readEndMark(): void {
    this.finish()
    this.replaceEvent(this.#ending())
  }

  protected override readValue(chunk: Record<string, unknown>, { name }: EventLines): void {
    if (name?.trim() === 'error' || isErrorEnvelope(chunk) || failedChoice(chunk['choices']) !== undefined) {
      // An empty report is ignored, and the usage is estimated.
      this.usage = usedOf(this.#usageIn(chunk, chunkUsage(chunk))) ?? this.usage
      this.fail(this.#dialect.streamFailure(chunk))
    } else this.#readChunk(chunk)
  }

  /** Whether chunks that only continue tool calls must be parsed. */
  get #readsCalls(): boolean {
    return this.#repair !== undefined || this.#choices.readsCalls
  }

  /** Learns a chunk that only continues one text, unless such chunks must be repaired. */
  #learnChunk(chunk: Record<string, unknown>, choices: readonly unknown[], model: ByteSpan): void {
    if (this.#repair !== undefined && !this.#repairsCallsOnly) return
    const paths = textPathsOf(choices)
    const isCall = paths?.[0]?.includes('tool_calls') === true
    if (paths === undefined || (isCall && this.#readsCalls)) return
    this.learn(chunk, [...paths, ['obfuscation'], ['p']], { model, isCall }, model.end)
  }

  /** Returns the end mark, after a chunk that ends open choices, and usage that arrived early. */
  #ending(): Buffer {
    const choices = this.#choices.ends()
    const usage = this.#usageAtEnd()
    if (choices.length === 0 && usage.length === 0) return DONE
    const end = choices.length === 0 ? [] : [this.#chunkOf({ choices })]
    return Buffer.concat([...end, ...usage, DONE])
  }

  /** Returns the usage that arrived early, or the charged usage if it was requested but not sent. */
  #usageAtEnd(): Buffer[] {
    if (this.#usageChunk !== undefined) return [this.#usageChunk]
    if (!this.#wantsUsage || this.usage !== undefined) return []
    const billed = this.#billedUsage?.(undefined, this.outputBytesSeen)
    if (billed === undefined) return []
    const { serviceTier } = this
    const cost = this.#costOf?.(serviceTier === undefined ? billed : { ...billed, serviceTier })
    return [this.#chunkOf({ choices: [], usage: { ...chatUsage(billed), ...(cost === undefined ? {} : { cost }) } })]
  }

  #chunkOf(members: object): Buffer {
    const created = this.#created ?? Math.floor(this.#nowMs / 1000)
    const chunk = { id: this.#id, object: 'chat.completion.chunk', created, model: this.#publicModel, ...members }
    return Buffer.from(sseData(JSON.stringify(chunk)))
  }

  #usageIn({ service_tier }: Record<string, unknown>, told: unknown): Usage | undefined {
    return usageAtTier(usageAsMarked(openaiUsage(told), this.#cacheTime), service_tier, this.#askedTier)
  }

  #readChunk(chunk: Record<string, unknown>): void {
    const told = chunkUsage(chunk)
    const usage = this.#usageIn(chunk, told)
    if (usage !== undefined) this.usage = usage
    this.serviceTier ??= usedTier(chunk['service_tier'], this.#askedTier)
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    if (choices.length === 0 && (usage === undefined || !this.#wantsUsage)) {
      this.drop()
      return
    }
    if (choices.length > 0) {
      this.#id ??= chunk['id']
      this.#created ??= chunk['created']
    }
    const isMended = this.#repair?.(chunk) === true
    const findings = this.#choices.mend(choices, answerMark(chunk['id'], this.#nowMs))
    if (findings.hasContent) this.countContent(findings.textBytes)
    if (findings.hasEnd) this.hasContent = true
    let changed = findings.changed || isMended
    if (!Array.isArray(chunk['choices'])) {
      chunk['choices'] = []
      changed = true
    }
    if (usage !== undefined) {
      // The usage that is now sent, or stored in its place, is newer.
      this.#usageChunk = undefined
      if (chunk['usage'] !== told) changed = true
      chunk['usage'] = told
      if (this.#changesUsage(chunk, usage)) changed = true
    }
    const isEarly = choices.length === 0 && this.#choices.areOpen
    const model = changed || isEarly ? undefined : this.editString(['model'], chunk['model'], this.#publicModelJson)
    if (model !== undefined) {
      this.#learnChunk(chunk, choices, model)
      return
    }
    chunk['model'] = this.#publicModel
    const written = Buffer.from(sseData(JSON.stringify(chunk)))
    if (isEarly) {
      this.#usageChunk = written
      this.drop()
    } else this.replaceEvent(written)
  }

  /** Removes usage that was not requested, or replaces the operator's cost by the caller's. */
  #changesUsage(chunk: Record<string, unknown>, usage: Usage): boolean {
    if (!this.#wantsUsage) return delete chunk['usage']
    const billed = this.#billedUsage?.(usage, this.outputBytesSeen)
    const mended = shownUsage(chunk['usage'], usage, billed, this.#isBilled)
    const cost = this.#costOf?.(billed ?? usage)
    if (cost === undefined && mended === undefined) return false
    chunk['usage'] = { ...(mended ?? (chunk['usage'] as object)), ...(cost === undefined ? {} : { cost }) }
    return true
  }
}

/** Streams live long, and many use the same few models. */
const jsonOfModels = new Map<string, Buffer>()
const MAX_MODELS = 256

function jsonBytes(model: string): Buffer {
  const known = jsonOfModels.get(model)
  if (known !== undefined) return known
  if (jsonOfModels.size >= MAX_MODELS) jsonOfModels.clear()
  const json = Buffer.from(JSON.stringify(model))
  jsonOfModels.set(model, json)
  return json
}

/** The content of a parsed chunk after repair. */
interface ChunkFindings {
  /** Whether the chunk was changed. */
  changed: boolean
  /** Whether the chunk contains content that a caller keeps. */
  hasContent: boolean
  /** Bytes of generated text in the chunk. */
  textBytes: number
  /** Whether the chunk ended a choice. */
  hasEnd: boolean
}

/**
 * Tracks the choices of one streamed answer: which have begun, which have ended. Adds the role to each choice's first delta,
 * repairs content and tool calls, maps non-standard finish reasons and removes repeated ones.
 */
class StreamedChoices {
  readonly #expected: number
  // Nearly every stream has one choice, and lives long. A set is created only for more.
  #firstBegun: number | undefined
  #othersBegun: Set<number> | undefined
  /** Created when the first choice ends, because a stream lives long and is then almost over. */
  #ended: Set<number> | undefined
  /** Reasons that arrived with content and may be followed by more. They are sent when the answer ends. */
  #held: Map<number, FinishReason> | undefined
  /** Choices with content after their end. */
  #reopened: Set<number> | undefined
  /** Created with the first tool call, for the same reason. */
  #calls: ToolCallRepair | undefined
  readonly #repairsToolCalls: boolean

  /** @param expected Number of requested choices. */
  constructor(expected: number, repairsToolCalls = false) {
    this.#expected = expected
    this.#repairsToolCalls = repairsToolCalls
  }

  /** Whether chunks that only continue tool calls must be read. */
  get readsCalls(): boolean {
    return this.#calls?.readsCalls ?? true
  }

  /** Whether every requested choice has begun. */
  get haveBegun(): boolean {
    return this.#begunCount >= this.#expected
  }

  /** Whether every requested and every begun choice has ended or has a stored reason. */
  get haveReasons(): boolean {
    const count = new Set([...(this.#ended ?? []), ...(this.#held?.keys() ?? [])]).size
    return count >= this.#expected && count >= this.#begunCount
  }

  get #begunCount(): number {
    return this.#firstBegun === undefined ? 0 : 1 + (this.#othersBegun?.size ?? 0)
  }

  /** Returns false if the choice had already begun. */
  #begin(index: number): boolean {
    if (this.#firstBegun === index || this.#othersBegun?.has(index) === true) return false
    if (this.#firstBegun === undefined) this.#firstBegun = index
    else {
      this.#othersBegun ??= new Set()
      this.#othersBegun.add(index)
    }
    return true
  }

  /** Whether a choice has begun and not ended. */
  get areOpen(): boolean {
    return (this.#ended?.size ?? 0) < this.#begunCount
  }

  /** Returns the last chunk's choices for those that have begun and not ended. */
  ends(): object[] {
    const begun = this.#firstBegun === undefined ? [] : [this.#firstBegun, ...(this.#othersBegun ?? [])]
    return begun
      .filter((index) => this.#ended?.has(index) !== true)
      .map((index) => {
        const held = this.#held?.get(index)
        const hasCalls = this.#calls?.hasCalls(index) === true
        const finishReason = endReason(held === 'stop' && hasCalls ? undefined : held, hasCalls)
        return { index, delta: {}, logprobs: null, finish_reason: finishReason }
      })
  }

  /** Reads a chunk's choices and repairs them in place. */
  mend(choices: readonly unknown[], answerId: string): ChunkFindings {
    const findings: ChunkFindings = { changed: false, hasContent: false, textBytes: 0, hasEnd: false }
    for (const choice of choices) if (isJsonObject(choice)) this.#mendChoice(choice, findings, answerId)
    return findings
  }

  #mendChoice(choice: Record<string, unknown>, findings: ChunkFindings, answerId: string): void {
    const index = typeof choice['index'] === 'number' ? choice['index'] : 0
    if (!isJsonObject(choice['delta'])) {
      choice['delta'] = {}
      findings.changed = true
    }
    const delta = choice['delta'] as Record<string, unknown>
    const isFirst = this.#begin(index)
    if (isFirst && delta['role'] !== 'assistant') {
      delta['role'] = 'assistant'
      findings.changed = true
    }
    if (mendContentParts(delta)) findings.changed = true
    if (delta['tool_calls'] !== undefined) {
      this.#calls ??= new ToolCallRepair(this.#repairsToolCalls)
      if (this.#calls.mend(delta, index, answerId)) findings.changed = true
    }
    const isMore = carriesContent(delta)
    if (isMore) findings.hasContent = true
    if (isMore && this.#ended?.has(index) === true) {
      this.#reopened ??= new Set()
      this.#reopened.add(index)
    }
    findings.textBytes += messageTextBytes(delta)
    const reason = choice['finish_reason']
    if (reason === null || reason === undefined) return
    // A verdict on text that was already sent cannot end it again. Its findings stay in the chunk.
    const isVerdict = this.#ended?.has(index) === true && this.#reopened?.has(index) !== true
    let known = reason === '' || isVerdict ? null : openaiFinishReason(reason)
    if (known !== null && (isMore || isFirst)) {
      this.#held ??= new Map()
      this.#held.set(index, known)
      known = null
    } else if (known !== null) {
      this.#ended ??= new Set()
      this.#ended.add(index)
      findings.hasEnd = true
    }
    if (known !== reason) {
      choice['finish_reason'] = known
      findings.changed = true
    }
  }
}

function carriesContent(delta: Record<string, unknown>): boolean {
  for (const name in delta) {
    const value = delta[name]
    if (typeof value === 'string' ? value !== '' && name !== 'role' : hasMembers(value)) return true
  }
  return false
}

function hasMembers(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** Facts about chunks that only continue a text. */
interface KnownChunk {
  /** Span of the model, counted from the start of the event. */
  readonly model: ByteSpan
  readonly isCall: boolean
}

/** Members of a delta whose text is generated. Servers that send reasoning under two names repeat it. */
const TEXT_MEMBERS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const

/** Returns the paths of the text that a chunk only continues, and of its copy, or `undefined` if it does more. */
function textPathsOf(choices: readonly unknown[]): JsonPath[] | undefined {
  const [choice] = choices
  if (choices.length !== 1 || !isJsonObject(choice) || !isJsonObject(choice['delta'])) return undefined
  if ((choice['finish_reason'] ?? null) !== null) return undefined
  const { delta } = choice
  const names = Object.keys(delta).filter(
    (name) => name !== 'role' && (hasMembers(delta[name]) || isNonEmptyString(delta[name])),
  )
  const path = ['choices', 0, 'delta']
  if (names[0] === 'tool_calls') return names.length === 1 ? argumentsPathsOf(delta['tool_calls'], path) : undefined
  const texts = TEXT_MEMBERS.filter((name) => names.includes(name))
  const isOneText =
    texts.length === 1 ||
    (texts.length === 2 && texts.every((name) => name.startsWith('reasoning') && delta[name] === delta['reasoning']))
  return isOneText && texts.length === names.length ? texts.map((name) => [...path, name]) : undefined
}

/** Returns the path of the arguments that a chunk of one call continues. A chunk with an id or a name opens a call. */
function argumentsPathsOf(calls: unknown, path: JsonPath): JsonPath[] | undefined {
  const [call] = Array.isArray(calls) ? calls : []
  if (!isJsonObject(call) || (calls as unknown[]).length !== 1 || typeof call['index'] !== 'number') return undefined
  const { id, function: called } = call
  if (isNonEmptyString(id) || !isJsonObject(called) || isNonEmptyString(called['name'])) return undefined
  return isNonEmptyString(called['arguments']) ? [[...path, 'tool_calls', 0, 'function', 'arguments']] : undefined
}

/**
 * Gives streamed tool calls the members that clients assemble them by: `index` in every chunk; `id`, `type` and a name in the first
 * chunk of a call only. Chunks that already have this form stay unchanged.
 */
class ToolCallRepair {
  #isNeeded: boolean
  readonly #byChoice = new Map<number, StreamedToolCalls>()

  /** @param isNeeded Whether the server's chunks may look complete and are not, such as with repeated indexes. */
  constructor(isNeeded = false) {
    this.#isNeeded = isNeeded
  }

  /** Whether chunks that only continue calls must be read. Chunks that open calls always are. */
  get readsCalls(): boolean {
    return this.#isNeeded
  }

  /** Whether a choice has called a tool in the chunks read so far. */
  hasCalls(choice: number): boolean {
    return this.#byChoice.has(choice)
  }

  /** Repairs the tool calls of a delta in place. Returns whether it changed. */
  mend(delta: Record<string, unknown>, choice: number, answerId: string): boolean {
    const given = delta['tool_calls']
    if (!Array.isArray(given) || given.length === 0) return false
    const calls = this.#byChoice.get(choice) ?? new StreamedToolCalls()
    this.#byChoice.set(choice, calls)
    const mended = given.filter(isJsonObject).flatMap((piece) => {
      const located = calls.locate(piece, answerId)
      if (located === undefined || !isAsLocated(piece, located)) this.#isNeeded = true
      return located === undefined ? [] : [located.opens ? opening(located) : continuing(located)]
    })
    if (!this.#isNeeded) return false
    if (mended.length > 0) delta['tool_calls'] = mended
    else delete delta['tool_calls']
    return true
  }
}

/** Clients concatenate the texts of chunks, including ids and names. */
function isAsLocated(given: Record<string, unknown>, { index, opens, id, name }: LocatedPiece): boolean {
  const { arguments: json = '', name: written } = functionOf(given)
  if (given['index'] !== index || typeof json !== 'string') return false
  if (!opens) return !isNonEmptyString(given['id']) && !isNonEmptyString(written)
  return given['id'] === id && isNonEmptyString(given['type']) && (written ?? '') === name
}

function opening({ index, id, name, json, piece }: LocatedPiece): Record<string, unknown> {
  // A call of another type has its input under another name, and no function.
  if (isNonEmptyString(piece['type']) && !isJsonObject(piece['function'])) return { ...piece, index, id }
  return { ...piece, index, id, type: 'function', function: { ...functionOf(piece), name, arguments: json } }
}

function continuing({ index, json, piece }: LocatedPiece): Record<string, unknown> {
  const { id: _id, type: _type, ...rest } = piece
  if (!isJsonObject(piece['function'])) return { ...rest, index }
  return { ...rest, index, function: { arguments: json } }
}

function functionOf(piece: Record<string, unknown>): Record<string, unknown> {
  return objectOf(piece['function'])
}

function isNonEmptyString(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
