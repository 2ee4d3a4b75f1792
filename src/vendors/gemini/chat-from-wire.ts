import { exactJsonText } from '../../core/exact-json.ts'
import { isJsonObject, objectOf, objectsIn } from '../../core/json.ts'
import { type Usage, usedOf } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { ChatCompletion, FinishReason } from '../../endpoints/chat/chat-completion.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { EventDecoder, type EventLines } from '../../endpoints/event-reader.ts'
import { CompletionCollector } from '../shared/completion-collector.ts'
import type { BrokenChat, VendorCall, VendorFailure, WireAnswer } from '../vendor.ts'
import { brokenCandidate, responseFailure } from './api-request.ts'
import { signatureExtra } from './model-abilities.ts'
import { usageFrom } from './usage-from.ts'

/** Reads a whole answer of `generateContent`. Returns `undefined` for an error in a 2xx, or without content and reason. */
export function chatFromWire(
  answer: WireAnswer,
  call: VendorCall<ChatRequest>,
): { completion: ChatCompletion; usage: Usage | undefined } | undefined {
  const response = parseAnswerJson(new TextDecoder().decode(answer.body), 'args')
  if (!isJsonObject(response)) return undefined
  const collector = new CompletionCollector()
  const reader = new AnswerReader(collector, call)
  reader.read(response)
  const { usage } = reader
  const completion = collector.completion(call, usage)
  if (reader.failure !== undefined || completion === undefined) return undefined
  const candidates = (Array.isArray(response['candidates']) ? response['candidates'] : []).filter(isJsonObject)
  // Keeps the first candidate of each index.
  const byIndex = new Map(candidates.reverse().map((candidate) => [candidate['index'] ?? 0, candidate]))
  for (const choice of completion.choices) choice.logprobs = logprobsFrom(byIndex.get(choice.index))
  return { completion, usage }
}

/** Reads a whole answer with unusable content, such as a call that cannot be parsed. The vendor bills it anyway. */
export function brokenAnswer(answer: WireAnswer, call: VendorCall<ChatRequest>): BrokenChat | undefined {
  const reader = new AnswerReader(new CompletionCollector(), call)
  reader.read(parseAnswerJson(new TextDecoder().decode(answer.body), 'args'))
  const usage = usedOf(reader.usage)
  if (reader.failure === undefined || usage === undefined) return undefined
  return { failure: { ...reader.failure, status: answer.status }, usage }
}

/** Output of one candidate so far. */
interface CandidateState {
  toolCallCount: number
  /** A signature on reasoning or on an empty text. It belongs to the call next to it, else to the message. */
  looseSignature: string | undefined
  messageSignature: string | undefined
  /** Latest known finish reason. Some answers have one before their content, or in every event. */
  finishReason: string | undefined
}

/**
 * Reads response objects of `generateContent`, one for a whole answer and many for a stream, and passes their content to a writer.
 * Both use this class, so that the same answer has the same text, calls and usage.
 */
class AnswerReader {
  failure: VendorFailure | undefined
  usage: Usage | undefined
  readonly #writer: ChatStreamWriter
  readonly #fallbackId: string
  readonly #call: Pick<VendorCall<ChatRequest>, 'apiKey' | 'reportProblem'>
  readonly #candidates = new Map<number, CandidateState>()
  #id: string | undefined
  #isBlocked = false

  constructor(writer: ChatStreamWriter, call: Pick<VendorCall<ChatRequest>, 'apiKey' | 'nowMs' | 'reportProblem'>) {
    this.#writer = writer
    this.#fallbackId = `gemini-${call.nowMs.toString(36)}`
    this.#call = { apiKey: call.apiKey, reportProblem: call.reportProblem }
  }

  /** Whether every candidate has a finish reason, or the prompt was blocked. */
  get isComplete(): boolean {
    if (this.#candidates.size === 0) return this.#isBlocked
    return [...this.#candidates.values()].every((candidate) => candidate.finishReason !== undefined)
  }

  /** Reads one response object. After a failure, objects are ignored. */
  read(response: unknown): void {
    if (this.failure !== undefined) return
    this.failure = responseFailure(response, this.#call.apiKey)
    if (this.failure !== undefined || !isJsonObject(response)) return
    this.#open(response['responseId'])
    const candidates = Array.isArray(response['candidates']) ? response['candidates'] : []
    for (const candidate of candidates) if (isJsonObject(candidate)) this.#readCandidate(candidate)
    const feedback = response['promptFeedback']
    if (this.#candidates.size === 0 && isJsonObject(feedback) && blocksPrompt(feedback['blockReason'])) this.#block()
    this.#count(usageFrom(response['usageMetadata']))
  }

  /**
   * Ignores metadata without counts or with zeros inside a stream, because every prompt has tokens. A blocked prompt has no output,
   * whether that is reported or not.
   */
  #count(usage: Usage | undefined): void {
    const isReport = usage !== undefined && (usage.inputTokens ?? 0) > 0
    if (isReport || (this.usage === undefined && this.isComplete))
      this.usage = this.#isBlocked ? { outputTokens: 0, ...usage } : usage
  }

  #open(responseId: unknown): void {
    if (this.#id !== undefined) return
    this.#id = typeof responseId === 'string' && responseId !== '' ? responseId : this.#fallbackId
    this.#writer.start(this.#id)
  }

  #block(): void {
    if (this.#isBlocked) return
    this.#isBlocked = true
    this.#writer.finish('content_filter', 0)
  }

  #readCandidate(candidate: Record<string, unknown>): void {
    const broken = brokenCandidate(candidate)
    if (broken !== undefined) {
      this.failure = broken
      return
    }
    const choice = typeof candidate['index'] === 'number' ? candidate['index'] : 0
    const state = this.#stateOf(choice)
    const parts = partsOf(candidate)
    for (const part of parts) this.#readPart(part, choice, state)
    const { finishReason: given } = candidate
    const reason = typeof given === 'string' ? given : state.finishReason
    if (reason !== undefined && (state.finishReason === undefined || parts.length > 0))
      this.#finish(reason, choice, state)
  }

  #stateOf(choice: number): CandidateState {
    const known = this.#candidates.get(choice)
    if (known !== undefined) return known
    const state = { toolCallCount: 0, looseSignature: undefined, messageSignature: undefined, finishReason: undefined }
    this.#candidates.set(choice, state)
    return state
  }

  #readPart(part: Record<string, unknown>, choice: number, state: CandidateState): void {
    const { text, thought, functionCall, thoughtSignature } = part
    const signature = typeof thoughtSignature === 'string' && thoughtSignature !== '' ? thoughtSignature : undefined
    if (isJsonObject(functionCall)) {
      this.#readCall(functionCall, signature, choice, state)
      return
    }
    if (typeof text === 'string' && text !== '') {
      if (thought === true) this.#writer.reasoning(text, choice)
      else this.#writer.text(text, choice)
    }
    if (signature === undefined) return
    if (thought === true || text === undefined || text === '') state.looseSignature = signature
    else state.messageSignature = signature
  }

  #readCall(
    call: Record<string, unknown>,
    ownSignature: string | undefined,
    choice: number,
    state: CandidateState,
  ): void {
    const index = state.toolCallCount
    state.toolCallCount += 1
    const signature = ownSignature ?? (index === 0 ? state.looseSignature : undefined)
    if (signature !== undefined) state.looseSignature = undefined
    const { id, name, args } = call
    this.#writer.toolCall(
      {
        index,
        id: typeof id === 'string' && id !== '' ? id : this.#madeCallId(choice, index),
        name: typeof name === 'string' ? name : '',
        ...(signature === undefined ? {} : { extra: signatureExtra(signature) }),
      },
      choice,
    )
    this.#writer.toolCallArguments(index, exactJsonText(objectOf(args)), choice)
  }

  /** Older models give calls no id. Other vendors that may read the history later allow 40 word characters. */
  #madeCallId(choice: number, index: number): string {
    const answer = (this.#id ?? this.#fallbackId).replace(/[^\w-]/g, '').slice(0, 24)
    return `call_${answer}_${choice}_${index}`
  }

  #finish(reason: string, choice: number, state: CandidateState): void {
    state.finishReason = reason
    if (reason === ACCOUNT_REASON)
      this.#call.reportProblem?.({
        kind: 'operator',
        status: 200,
        code: reason,
        message: 'the vendor has limited or disabled the account: its policy of prohibited use was violated',
      })
    const signature = state.messageSignature ?? state.looseSignature
    state.messageSignature = undefined
    state.looseSignature = undefined
    if (signature !== undefined) this.#writer.extraContent(signatureExtra(signature), choice)
    this.#writer.finish(finishReason(reason, state.toolCallCount > 0), choice)
  }
}

/** Returns the parts of a candidate, which may have `content: {}`, `parts: null`, or no content. */
export function partsOf({ content }: Record<string, unknown>): Record<string, unknown>[] {
  return objectsIn(objectOf(content)['parts'])
}

/**
 * Why a candidate stopped (Gemini API, "FinishReason"). `OTHER` and similar reasons stand for answers that the vendor withheld
 * without a reason.
 */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['OTHER', 'content_filter'],
  ['NO_IMAGE', 'content_filter'],
  ['IMAGE_OTHER', 'content_filter'],
  ['ESCALATION', 'content_filter'],
  ['PUP_LIMITED_DISABLED', 'content_filter'],
])

/** The vendor has limited or disabled the operator's account for violating its prohibited use policy. */
const ACCOUNT_REASON = 'PUP_LIMITED_DISABLED'

/** Returns the neutral reason. The vendor has none for tool calls. An unknown reason counts as `OTHER`, never as success. */
export function finishReason(reason: string, hasToolCalls: boolean): FinishReason {
  const known = FINISH_REASONS.get(reason) ?? 'content_filter'
  return known === 'stop' && hasToolCalls ? 'tool_calls' : known
}

/** Whether the gateway knows a finish reason. */
export function isKnownReason(reason: string): boolean {
  return FINISH_REASONS.has(reason)
}

/** The Gemini API and Vertex AI spell the unspecified value differently. */
const UNSPECIFIED: ReadonlySet<string> = new Set(['', 'BLOCK_REASON_UNSPECIFIED', 'BLOCKED_REASON_UNSPECIFIED'])

/** Whether a value is a reason to block a prompt. The unspecified value is not. */
export function blocksPrompt(blockReason: unknown): boolean {
  return typeof blockReason === 'string' && !UNSPECIFIED.has(blockReason)
}

/** A token and its log probability, in the format of OpenAI's API. */
interface TokenLogprob {
  token: string
  logprob: number
  /** The token's UTF-8 bytes. */
  bytes: number[]
}

/** The `logprobs` of a choice. */
interface ChoiceLogprobs {
  content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[]
  refusal: null
}

/** Reads a candidate's `logprobsResult` (Gemini API, "LogprobsResult"). Returns null if it has none. */
function logprobsFrom(candidate: unknown): ChoiceLogprobs | null {
  const result = isJsonObject(candidate) ? candidate['logprobsResult'] : undefined
  const chosen = isJsonObject(result) ? result['chosenCandidates'] : undefined
  if (!isJsonObject(result) || !Array.isArray(chosen)) return null
  const steps = Array.isArray(result['topCandidates']) ? result['topCandidates'] : []
  const content = chosen.flatMap((token, index) =>
    tokenLogprobs(token).map((one) => ({ ...one, top_logprobs: topOf(steps[index]) })),
  )
  return { content, refusal: null }
}

function topOf(step: unknown): TokenLogprob[] {
  const candidates = isJsonObject(step) ? step['candidates'] : undefined
  return Array.isArray(candidates) ? candidates.flatMap(tokenLogprobs) : []
}

function tokenLogprobs(value: unknown): TokenLogprob[] {
  if (!isJsonObject(value)) return []
  const { token, logProbability } = value
  if (typeof token !== 'string' || typeof logProbability !== 'number') return []
  return [{ token, logprob: logProbability, bytes: [...new TextEncoder().encode(token)] }]
}

const LINE_FEED = 0x0a
const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

/** Maximum size of a stored tail. Errors are far shorter. */
const MAX_TAIL_BYTES = 1024 * 1024

/**
 * Separates events from plain JSON after them: the vendor writes some errors into a running event stream without an event
 * around them. No line of an event begins with a brace or bracket, so the first line that does begins the tail.
 */
export class BareJsonTail {
  readonly #decoder = new TextDecoder()
  #text: string | undefined
  #byteLength = 0
  #isAtLineStart = true

  /** Processes one network read and returns the part of it that belongs to events. */
  push(chunk: Uint8Array): Uint8Array {
    const start = this.#text === undefined ? this.#tailStart(chunk) : 0
    if (start === -1) return chunk
    const tail = chunk.subarray(start)
    this.#byteLength += tail.byteLength
    if (this.#byteLength <= MAX_TAIL_BYTES)
      this.#text = (this.#text ?? '') + this.#decoder.decode(tail, { stream: true })
    return chunk.subarray(0, start)
  }

  /** Returns the tail's text, or `undefined` if the stream contained only events. */
  end(): string | undefined {
    return this.#text
  }

  #tailStart(chunk: Uint8Array): number {
    let position = 0
    while (position < chunk.length) {
      const byte = chunk[position]
      if (this.#isAtLineStart && (byte === OPEN_BRACE || byte === OPEN_BRACKET)) return position
      const lineEnd = chunk.indexOf(LINE_FEED, position)
      this.#isAtLineStart = lineEnd !== -1
      if (lineEnd === -1) return -1
      position = lineEnd + 1
    }
    return -1
  }
}

/**
 * Reads a stream of `streamGenerateContent?alt=sse`: each event is a whole response object, and there is no end mark, so
 * that a stream without a finish reason was cut.
 */
export function chatDecoder(call: VendorCall<ChatRequest>, writer: ChatStreamWriter): ChatStreamDecoder {
  return new ChatDecoder(new AnswerReader(writer, call))
}

class ChatDecoder extends EventDecoder implements ChatStreamDecoder {
  readonly hasRunningUsage = true
  readonly #answer: AnswerReader
  readonly #tail = new BareJsonTail()

  constructor(answer: AnswerReader) {
    super()
    this.#answer = answer
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get usage(): Usage | undefined {
    return this.#answer.usage
  }

  override push(chunk: Uint8Array): void {
    if (!this.isOver) super.push(this.#tail.push(chunk))
  }

  protected override bodyEnded(): undefined {
    const tail = this.#tail.end()
    if (tail !== undefined) this.#read(tail)
  }

  protected override readEvent(event: EventLines): void {
    // Proxies for several dialects add OpenAI's end mark to every stream.
    if (event.text !== '' && !event.isEndMark) this.#read(event.text)
  }

  #read(data: string): void {
    const response = parseAnswerJson(data, 'args')
    if (response === undefined) {
      this.failInvalid('the vendor sent an event that is not JSON')
      return
    }
    this.#answer.read(response)
    if (this.#answer.failure !== undefined) this.fail(this.#answer.failure)
  }
}
