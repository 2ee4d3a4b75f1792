import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import { chatUsage, type FinishReason } from '../../endpoints/chat/chat-completion.ts'
import { messageTextBytes } from '../../endpoints/chat/chat-operation.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { EventLines } from '../../wire/event-splitter.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  closingQuote,
  decodedByteLength,
  isText,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
  skipBlanks,
  startsWith,
} from '../../wire/json-cursor.ts'
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
import { usageAtTier, usedTier } from './purchase-price.ts'
import { PassThroughStream } from './stream-parts.ts'
import { answerMark, type LocatedPiece, StreamedToolCalls } from './streamed-tool-calls.ts'

const DONE = Buffer.from(SSE_DONE)

/**
 * Passes a streamed chat of OpenAI's dialect through, event by event, with the model id replaced. Ordinary chunks are only scanned;
 * the first, the last and unusual ones are parsed. It guarantees more than vendors do: a choice in every chunk except the usage
 * chunk, a delta in every choice, a role in its first one, content as text, tool calls that clients can assemble, one of the
 * dialect's finish reasons in every choice, usage only if requested, one `[DONE]`, no error events, and no `[DONE]` after an
 * incomplete answer.
 */
export class OpenAIChatPassThrough extends PassThroughStream {
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
  readonly #scan = new ChatChunkScan()
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

  protected override skipEvent(bytes: Buffer, start: number): number {
    if (!this.#passesScanned) return -1
    const end = this.#scan.skipAlike(bytes, start)
    if (end !== -1) this.#passScanned()
    return end
  }

  protected readEvent(event: EventLines, isRest: boolean): void {
    const isErrorEvent = event.name?.trim() === 'error'
    if (event.hasOneLine && !isErrorEvent) {
      if (this.#passesOrdinary(event)) return
      if (event.isEndMark) {
        this.finish()
        this.replaceEvent(this.#ending())
        return
      }
    }
    const chunk = parseAnswerJson(event.text, 'arguments')
    if (!isJsonObject(chunk)) this.failUnreadable(isRest)
    else if (isErrorEvent || isErrorEnvelope(chunk) || failedChoice(chunk['choices']) !== undefined) {
      // An empty report is ignored, and the usage is estimated.
      this.usage = usedOf(this.#usageIn(chunk, chunkUsage(chunk))) ?? this.usage
      this.fail(this.#dialect.streamFailure(chunk))
    } else this.#readChunk(chunk)
  }

  /** Whether chunks may pass without being parsed. */
  get #passesScanned(): boolean {
    return this.#choices.haveBegun && (this.#repair === undefined || this.#repairsCallsOnly)
  }

  /** Passes an ordinary chunk on with its model replaced. Returns false if it must be parsed. */
  #passesOrdinary({ bytes, start, end, dataStart, dataEnd }: EventLines): boolean {
    if (!this.#passesScanned) return false
    const scan = this.#scan
    if (!scan.scan(bytes, dataStart, dataEnd) || (scan.hasToolCalls && (scan.opensCalls || this.#readsCalls)))
      return false
    scan.keepAlike(bytes, start, end)
    this.#passScanned()
    return true
  }

  /** Whether chunks that only continue tool calls must be parsed. */
  get #readsCalls(): boolean {
    return this.#repair !== undefined || this.#choices.readsCalls
  }

  #passScanned(): void {
    const scan = this.#scan
    if (scan.hasContent) this.countContent(scan.textBytes)
    this.edit(scan.modelStart, scan.modelEnd, this.#publicModelJson)
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
    if (!changed && !isEarly && this.editString(['model'], chunk['model'], this.#publicModelJson)) return
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

const LETTER_N = 0x6e

const CONTENT = Buffer.from('"content":"')

// Nesting depths inside a chunk: its members, the choices, a choice's members, the members of its delta.
const TOP = 1
const CHOICE = 3
const DELTA = 4
// Depth of the members of a tool call in the delta.
const TOOL_CALL = 6

/**
 * Scans the text of one chat chunk without parsing it, to find out whether it is ordinary: it has choices, each with a delta, no
 * usage, no error and no finish reason, its content is text, its tool calls have an index, and its model is a string. Other chunks
 * are rare (the first and the last few of a stream) and are parsed. Nothing is allocated; the fields hold the findings of the last
 * scan.
 *
 * The chunks of one answer start alike (id, model, index) up to the members of the delta, and most end alike after the text of
 * their content. The start of the first ordinary chunk is stored, and equal bytes are not scanned again. {@link skipAlike} finds
 * whole events that differ from a scanned one only in the text of their content.
 */
class ChatChunkScan {
  /** Span of the top-level `model` value, quotes included. */
  modelStart = -1
  modelEnd = -1
  hasToolCalls = false
  /** Whether a tool call has more than an index and the text of its arguments. It then opens a call, or needs a repair. */
  opensCalls = false
  /** Bytes of generated text in the deltas. */
  textBytes = 0
  // Number of members in the deltas that a caller keeps.
  #contentMembers = 0
  // Bytes of reasoning in the current choice.
  #reasoningBytes = 0
  #inChoices = false
  #hasChoices = false
  #inDelta = false
  // Number of choices minus deltas, and of tool calls minus their indexes. Both are 0 at the end of an ordinary chunk.
  #choicesWithoutDelta = 0
  #callsWithoutIndex = 0
  // Start of the first delta's members in the last walked chunk, or 0 without one.
  #deltaStart = 0
  #beginning: Buffer | undefined
  #beginningModelStart = -1
  #beginningModelEnd = -1
  // Span of the text that the delta of the last ordinary chunk begins with. The end is -1 if it has none, or more content.
  #textStart = 0
  #textEnd = -1
  // Bytes of an event before and after that text, and the position of the model in them.
  #head: Buffer | undefined
  #tail: Buffer | undefined
  #headModelStart = 0
  #headModelEnd = 0

  /** Whether a delta carried content that a caller keeps. */
  get hasContent(): boolean {
    return this.#contentMembers > 0
  }

  /** Whether `bytes[start, end)` is an ordinary chunk. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    this.hasToolCalls = false
    this.opensCalls = false
    this.textBytes = 0
    this.#contentMembers = 0
    this.#reasoningBytes = 0
    this.#textEnd = -1
    const beginning = this.#beginning
    if (beginning !== undefined && startsWith(bytes, start, beginning))
      return this.#resume(bytes, start, end, beginning)
    this.modelStart = -1
    this.modelEnd = -1
    this.#deltaStart = 0
    this.#inChoices = false
    this.#hasChoices = false
    this.#inDelta = false
    this.#choicesWithoutDelta = 0
    this.#callsWithoutIndex = 0
    if (!this.#walk(bytes, start, end, 0)) return false
    if (beginning === undefined && this.#deltaStart !== 0) this.#keepBeginning(bytes, start)
    return true
  }

  /** Stores the event `bytes[start, end)`, whose chunk was scanned last, for {@link skipAlike}, unless one is stored. */
  keepAlike(bytes: Buffer, start: number, end: number): void {
    if (this.#textEnd === -1) return
    this.#head = Buffer.from(bytes.subarray(start, this.#textStart))
    this.#tail = Buffer.from(bytes.subarray(this.#textEnd, end))
    // The bytes are stored once.
    const beginningEnd = this.#head.length - CONTENT.length
    this.#beginning = this.#head.subarray(beginningEnd - this.#beginning!.length, beginningEnd)
    this.#headModelStart = this.modelStart - start
    this.#headModelEnd = this.modelEnd - start
  }

  /** Returns the position after the event at `start` if only its text differs from the stored one, else -1. */
  skipAlike(bytes: Buffer, start: number): number {
    const head = this.#head
    if (head === undefined || !startsWith(bytes, start, head)) return -1
    const textStart = start + head.length
    const textEnd = endOfText(bytes, textStart)
    if (!startsWith(bytes, textEnd, this.#tail!)) return -1
    this.hasToolCalls = false
    this.opensCalls = false
    this.textBytes = decodedByteLength(bytes, textStart, textEnd)
    this.#contentMembers = textEnd > textStart ? 1 : 0
    this.modelStart = start + this.#headModelStart
    this.modelEnd = start + this.#headModelEnd
    return textEnd + this.#tail!.length
  }

  #resume(bytes: Buffer, start: number, end: number, beginning: Buffer): boolean {
    const hasModel = this.#beginningModelStart !== -1
    this.modelStart = hasModel ? start + this.#beginningModelStart : -1
    this.modelEnd = hasModel ? start + this.#beginningModelEnd : -1
    const from = start + beginning.length
    this.#inChoices = true
    this.#hasChoices = true
    this.#inDelta = true
    this.#choicesWithoutDelta = 0
    this.#callsWithoutIndex = 0
    if (!this.#walk(bytes, from, end, DELTA)) return false
    if (this.#head === undefined && hasModel && startsWith(bytes, from, CONTENT)) {
      const textStart = from + CONTENT.length
      const textEnd = endOfText(bytes, textStart)
      // The rest must contain no tool call and no other text, which only a full walk would find.
      const isOnlyContent = this.#contentMembers === (textEnd > textStart ? 1 : 0)
      this.#textStart = textStart
      this.#textEnd = isOnlyContent && bytes[textEnd] === QUOTE ? textEnd : -1
    }
    return true
  }

  #keepBeginning(bytes: Buffer, start: number): void {
    const hasModel = this.modelStart !== -1 && this.modelStart < this.#deltaStart
    this.#beginning = Buffer.from(bytes.subarray(start, this.#deltaStart))
    this.#beginningModelStart = hasModel ? this.modelStart - start : -1
    this.#beginningModelEnd = hasModel ? this.modelEnd - start : -1
  }

  #walk(bytes: Buffer, start: number, end: number, startDepth: number): boolean {
    let depth = startDepth
    let position = start
    while (position < end) {
      const byte = bytes[position]
      if (byte === QUOTE) {
        const close = closingQuote(bytes, position, end)
        if (close === -1) return false
        let next = skipBlanks(bytes, close + 1)
        if (bytes[next] === COLON) {
          next = skipBlanks(bytes, next + 1)
          if (depth <= DELTA) {
            if (!this.#isOrdinaryMember(bytes, position + 1, close, next, end, depth)) return false
          } else if (this.#inDelta) {
            if (bytes[next] === QUOTE) this.#countNested(bytes, position + 1, close, next, end)
            else if (depth === TOOL_CALL && isText(bytes, position + 1, close, 'index')) this.#callsWithoutIndex -= 1
            else if (isText(bytes, position + 1, close, 'arguments')) this.opensCalls = true
          }
        }
        position = next
        continue
      }
      if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth += 1
        if (depth === CHOICE) {
          if (this.#inChoices && byte === OPEN_BRACE) {
            this.#choicesWithoutDelta += 1
            this.#reasoningBytes = 0
          }
        } else if (depth === TOOL_CALL && this.#inDelta) this.#callsWithoutIndex += 1
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth -= 1
        if (depth === 0) return this.#isWhole(bytes, position + 1, end)
      }
      position += 1
    }
    return false
  }

  /** Reads a member by its name, in `bytes[start, end)`, and the first byte of its value. */
  #isOrdinaryMember(
    bytes: Buffer,
    nameStart: number,
    nameEnd: number,
    value: number,
    end: number,
    depth: number,
  ): boolean {
    if (depth === TOP) return this.#isOrdinaryTopMember(bytes, nameStart, nameEnd, value, end)
    if (!this.#inChoices) return true
    if (depth === CHOICE) {
      if (isText(bytes, nameStart, nameEnd, 'finish_reason')) return bytes[value] === LETTER_N
      this.#inDelta = isText(bytes, nameStart, nameEnd, 'delta')
      if (this.#inDelta && bytes[value] === OPEN_BRACE) {
        this.#choicesWithoutDelta -= 1
        if (this.#deltaStart === 0) this.#deltaStart = value + 1
      }
      return true
    }
    if (depth !== DELTA || !this.#inDelta) return true
    const first = bytes[value]
    const second = bytes[value + 1]
    if (first === QUOTE) {
      if (second === QUOTE || isText(bytes, nameStart, nameEnd, 'role')) return true
      this.#contentMembers += 1
      this.#countMember(bytes, nameStart, nameEnd, value, end)
    } else if (first === OPEN_BRACKET && second !== CLOSE_BRACKET) {
      if (isText(bytes, nameStart, nameEnd, 'content')) return false
      this.#contentMembers += 1
      if (isText(bytes, nameStart, nameEnd, 'tool_calls')) this.hasToolCalls = true
    } else if (first === OPEN_BRACE && second !== CLOSE_BRACE) {
      // The old form of a call, and audio, are rare enough to be parsed.
      if (isText(bytes, nameStart, nameEnd, 'function_call') || isText(bytes, nameStart, nameEnd, 'audio')) return false
      this.#contentMembers += 1
    }
    return true
  }

  /** Servers that send reasoning under both of its names repeat it. */
  #countMember(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): void {
    const textBytes = stringBytes(bytes, value, end)
    if (isText(bytes, nameStart, nameEnd, 'content') || isText(bytes, nameStart, nameEnd, 'refusal'))
      this.textBytes += textBytes
    else if (isText(bytes, nameStart, nameEnd, 'reasoning_content') || isText(bytes, nameStart, nameEnd, 'reasoning')) {
      this.textBytes += Math.max(0, textBytes - this.#reasoningBytes)
      this.#reasoningBytes = Math.max(this.#reasoningBytes, textBytes)
    }
  }

  /** Counts a text inside a tool call, whose name and arguments, or input, are generated. */
  #countNested(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): void {
    if (!this.hasToolCalls) return
    const isEmpty = bytes[value + 1] === QUOTE
    if (!isEmpty && (isText(bytes, nameStart, nameEnd, 'id') || isText(bytes, nameStart, nameEnd, 'name')))
      this.opensCalls = true
    const isArguments = isText(bytes, nameStart, nameEnd, 'arguments') || isText(bytes, nameStart, nameEnd, 'input')
    if (isArguments || isText(bytes, nameStart, nameEnd, 'name')) this.textBytes += stringBytes(bytes, value, end)
  }

  #isOrdinaryTopMember(bytes: Buffer, nameStart: number, nameEnd: number, value: number, end: number): boolean {
    const first = bytes[value]
    this.#inChoices = false
    if (isText(bytes, nameStart, nameEnd, 'choices')) {
      const inside = skipBlanks(bytes, value + 1)
      this.#inChoices = true
      this.#hasChoices = true
      return first === OPEN_BRACKET && bytes[inside] !== CLOSE_BRACKET
    }
    if (isText(bytes, nameStart, nameEnd, 'model')) {
      if (first !== QUOTE || this.modelStart !== -1) return false
      this.modelStart = value
      this.modelEnd = closingQuote(bytes, value, end) + 1
      return this.modelEnd > 0
    }
    if (isText(bytes, nameStart, nameEnd, 'usage') || isText(bytes, nameStart, nameEnd, 'error'))
      return first === LETTER_N
    return true
  }

  #isWhole(bytes: Buffer, from: number, end: number): boolean {
    if (this.#choicesWithoutDelta !== 0 || this.#callsWithoutIndex !== 0) return false
    return skipBlanks(bytes, from, end) === end && this.#hasChoices && this.modelStart !== -1
  }
}

/** Returns the position of the quote that ends the text at `start`, or of a byte that is invalid in a text. */
function endOfText(bytes: Buffer, start: number): number {
  let position = start
  while (position < bytes.length) {
    const byte = bytes[position]!
    if (byte === QUOTE || byte < SPACE) break
    // A control character also ends an escape.
    position += byte === BACKSLASH && bytes[position + 1]! >= SPACE ? 2 : 1
  }
  return position
}

/** Returns the bytes of text in the string whose opening quote is at `value`. */
function stringBytes(bytes: Buffer, value: number, end: number): number {
  const close = closingQuote(bytes, value, end)
  return close === -1 ? 0 : decodedByteLength(bytes, value + 1, close)
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
  return isJsonObject(piece['function']) ? piece['function'] : {}
}

function isNonEmptyString(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
