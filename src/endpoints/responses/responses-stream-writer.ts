import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { GatewayError } from '../../core/errors.ts'
import type { Usage } from '../../core/usage.ts'
import { sseEvent } from '../../wire/sse.ts'
import type { ChatAnnotation, FinishReason } from '../chat/chat-completion.ts'
import type { ExtraContent, ThinkingBlock } from '../chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../chat/chat-stream-writer.ts'
import { TranslatedStream } from '../chat/translated-stream.ts'
import type { VendorCall } from '../operation.ts'
import { brokenStreamEnd, keepAliveEvent } from './broken-stream.ts'
import { OutputSequence } from './output-sequence.ts'
import { type EnvelopeOwner, sealReasoning } from './reasoning-envelope.ts'
import {
  type IncompleteReason,
  type ResponseFacts,
  type ResponseStatus,
  responseObject,
  responseUsage,
  showsReasoning,
} from './response-object.ts'
import type { ToolNames } from './tool-names.ts'

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
export class ResponsesStreamWriter implements ChatStreamWriter {
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

  /** Number of the last event; -1 before the first. */
  get lastNumber(): number {
    return this.#sequenceNumber - 1
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

  /** Ends the answer. Returns its last event separately, and the whole response. */
  done(usage: Usage | undefined): { readonly lastEvent: string; readonly response: Record<string, unknown> } {
    if (this.#finish === undefined) this.finish('stop')
    const status = incompleteReason(this.#finish) === undefined ? 'completed' : 'incomplete'
    this.#output.finish(status === 'incomplete')
    const response = this.#response(status, usage)
    return { lastEvent: this.#written(`response.${status}`, { response }), response }
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

/** Joins a vendor's chat decoder and the writer of Responses events into a stream of bytes for the caller. */
export class TranslatedResponsesStream extends TranslatedStream {
  /** Last event of a whole answer, sent once the answer is stored. */
  closing: string | undefined
  /** The whole response, once it is known. */
  keptAnswer: Record<string, unknown> | undefined
  readonly #events: ResponsesStreamWriter
  readonly #billedUsage: VendorCall<object>['billedUsage']

  constructor(
    decoder: ChatStreamDecoder,
    writer: ResponsesStreamWriter,
    billedUsage?: VendorCall<object>['billedUsage'],
  ) {
    super(decoder, writer)
    this.#events = writer
    this.#billedUsage = billedUsage
  }

  /** Returns bytes that keep a silent stream open, once it has begun. */
  keepAlive(): string {
    this.#events.begin()
    const begun = this.#events.take()
    return begun === '' ? keepAliveEvent(this.#events.lastNumber) : begun
  }

  /** Returns the end of a stream that broke. */
  failed(error: GatewayError): string {
    return this.#events.fail(error)
  }

  protected override take(): string {
    return this.#events.take()
  }

  protected override finish(): void {
    const { usage } = this.decoder
    const billed = this.#billedUsage === undefined ? usage : this.#billedUsage(usage, this.outputBytesSeen)
    const { lastEvent, response } = this.#events.done(billed)
    this.closing = lastEvent
    this.keptAnswer = response
  }
}
