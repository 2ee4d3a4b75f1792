import { Buffer } from 'node:buffer'
import type { GatewayError } from '../../core/errors.ts'
import { isJsonObject, objectOf } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import type { CacheTime } from '../../endpoints/cache-marks.ts'
import { type EventLines, PassThroughStream } from '../../endpoints/event-reader.ts'
import { ownMembersOf, type ResponseFacts, responseObject } from '../../endpoints/responses/response-object.ts'
import type { ResponsesRequest } from '../../endpoints/responses/responses-request.ts'
import { brokenStreamEnd, keepAliveEvent } from '../../endpoints/responses/responses-stream-writer.ts'
import type { KnownEvents } from '../../wire/event-template.ts'
import { findKnownString } from '../../wire/json-edits.ts'
import { SSE_COMMENT, sseEvent } from '../../wire/sse.ts'
import type { VendorCall, VendorFailure } from '../vendor.ts'
import { usageAsMarked } from './openai-chat-answer.ts'
import {
  IMAGE_CALL,
  isMadeImage,
  itemTextBytes,
  markedCacheTime,
  mendedUsage,
  outputTextBytes,
  responsesUsage,
} from './openai-responses-usage.ts'

/** Parts of the dialect for a stream. */
interface StreamDialect {
  streamFailure(envelope: Record<string, unknown>): VendorFailure
  readonly cachesAsMarked?: ((upstream: string) => boolean) | undefined
}

/** Types of the most frequent events. */
const DELTAS: ReadonlySet<unknown> = new Set(
  ['output_text', 'function_call_arguments', 'reasoning_summary_text', 'custom_tool_call_input'].map(
    (name) => `response.${name}.delta`,
  ),
)

/** Paths of the values that differ between two deltas of the same text; the text is first. */
export const DELTA_PATHS = [['delta'], ['sequence_number'], ['obfuscation']] as const

const IMAGE_EVENT = `response.${IMAGE_CALL}.`

/** Events that carry the whole response before its end. */
const BEGINNINGS: ReadonlySet<unknown> = new Set(['response.created', 'response.in_progress', 'response.queued'])

/**
 * Passes a streamed response through event by event (OpenAI API reference, "Streaming events"); only the model is replaced. The
 * last event is held back until the answer is stored. Errors are removed: the gateway writes the end of a stream that broke.
 */
export class OpenAIResponsesStream extends PassThroughStream<true> {
  usage: Usage | undefined
  closing: Uint8Array | undefined
  keptAnswer: Record<string, unknown> | undefined
  readonly #dialect: StreamDialect
  readonly #publicModel: string
  readonly #billedUsage: VendorCall<ResponsesRequest>['billedUsage']
  readonly #isBilled: boolean | undefined
  readonly #cacheTime: CacheTime
  readonly #facts: ResponseFacts
  /** Members that the vendor sets differently, or does not know. */
  readonly #ownMembers: ReturnType<typeof ownMembersOf>
  /** The response in its latest event. */
  #told: Record<string, unknown> | undefined
  /** Items that are done. */
  readonly #items: unknown[] = []
  /** Bytes of text in the items that are done. */
  #itemBytes = 0
  /** Ids of the images that the vendor has begun or finished. */
  readonly #images = new Set<unknown>()
  #lastNumber = -1
  #error: VendorFailure | undefined
  #isBetweenItems = false

  constructor(call: VendorCall<ResponsesRequest>, dialect: StreamDialect, maxEventBytes?: number) {
    super(maxEventBytes)
    this.#dialect = dialect
    this.#publicModel = call.publicModel
    this.#billedUsage = call.billedUsage
    this.#isBilled = call.isBilled
    this.#cacheTime = markedCacheTime(call, dialect)
    this.#ownMembers = ownMembersOf(call)
    const { publicModel: model, nowMs, conversation } = call
    // Drops the input, because a prompt with images may hold megabytes for as long as the stream lasts.
    const request = { ...call.request, input: '' }
    this.#facts = { id: conversation?.freshId ?? `resp_${nowMs.toString(16)}`, model, nowMs, request }
  }

  override get hasTextEnded(): boolean {
    return this.#isBetweenItems
  }

  /** A failed response reports its whole usage. */
  get hasRunningUsage(): boolean {
    return this.failure !== undefined && this.usage !== undefined
  }

  get innerImagesSeen(): number {
    return this.usage === undefined ? this.#images.size : 0
  }

  /** Before the first event, a client accepts no other event. */
  keepAlive(): string {
    return this.#told === undefined ? SSE_COMMENT : keepAliveEvent(this.#lastNumber)
  }

  failed(error: GatewayError): string {
    const begun = this.#told === undefined ? this.#begun() : { ...this.#told, output: this.#items }
    const head =
      this.#told === undefined
        ? ['response.created', 'response.in_progress'].map((type) => this.#written(type, { response: begun })).join('')
        : ''
    return head + brokenStreamEnd(error, begun, (type, members) => this.#written(type, members))
  }

  /** Whether events that carry the response can pass with only the model replaced. */
  get #passes(): boolean {
    return Object.keys(this.#ownMembers).length === 0
  }

  #begun(): Record<string, unknown> {
    return responseObject(this.#facts, { status: 'in_progress', output: [], usage: null })
  }

  protected override readKnown(known: KnownEvents<true>): boolean {
    this.#lastNumber = known.number
    this.countContent(known.textBytes)
    return true
  }

  /** An error without the failed response that should follow it. */
  protected override bodyEnded(): undefined {
    if (this.#error !== undefined) this.fail(this.#error)
  }

  protected override readValue(value: Record<string, unknown>, event: EventLines): void {
    const { type, sequence_number: number, response, item } = value
    if (type === 'error' || (type === undefined && isJsonObject(value['error']))) {
      this.#error = this.#dialect.streamFailure(isJsonObject(value['error']) ? value : { error: value })
      this.drop()
    } else if (type === 'response.failed') {
      const failed = objectOf(response)
      this.usage = this.#usageOf(failed)
      this.fail(this.#error ?? this.#dialect.streamFailure({ error: failed['error'] ?? value['error'] }))
    } else if (type === 'response.completed' || type === 'response.incomplete') {
      if (isJsonObject(response)) this.#end(event, value, response)
      else this.failUnreadable(event, false)
    } else {
      // The events above are removed, so the gateway uses their numbers for the end that it writes.
      if (typeof number === 'number') this.#lastNumber = number
      if (BEGINNINGS.has(type)) {
        if (isJsonObject(response)) this.#begin(value, response)
        return
      }
      this.#isBetweenItems = type === 'response.output_item.done'
      this.countContent(textBytesOf(value['delta'], type === 'response.output_item.added' ? item : undefined))
      if (type === 'response.output_item.added' || this.#isBetweenItems) this.#noteImage(item)
      else if (String(type).startsWith(IMAGE_EVENT)) this.#images.add(value['item_id'])
      if (this.#isBetweenItems) this.#itemDone(item)
      if (DELTAS.has(type) && typeof number === 'number') this.learn(value, DELTA_PATHS, true)
    }
  }

  /** A finished image call without an image has failed. */
  #noteImage(item: unknown): void {
    if (!isJsonObject(item) || item['type'] !== IMAGE_CALL) return
    if (!this.#isBetweenItems || isMadeImage(item)) this.#images.add(item['id'])
    else this.#images.delete(item['id'])
  }

  /** Some servers send an item as a whole, without deltas. */
  #itemDone(item: unknown): void {
    this.#items.push(item)
    if (isJsonObject(item)) this.#itemBytes += itemTextBytes(item)
    this.outputBytesSeen = Math.max(this.outputBytesSeen, this.#itemBytes)
  }

  #usageOf(response: Record<string, unknown>): Usage | undefined {
    return usageAsMarked(
      responsesUsage(response, this.#facts.request.service_tier, this.#facts.request, this.#images.size),
      this.#cacheTime,
    )
  }

  #begin(value: Record<string, unknown>, response: Record<string, unknown>): void {
    this.#told = { ...response, model: this.#publicModel, ...this.#ownMembers }
    const model = Buffer.from(JSON.stringify(this.#publicModel))
    if (this.#passes && this.editString(['response', 'model'], response['model'], model)) return
    this.replaceEvent(Buffer.from(sseEvent(String(value['type']), JSON.stringify({ ...value, response: this.#told }))))
  }

  #end(event: EventLines, value: Record<string, unknown>, response: Record<string, unknown>): void {
    this.usage = this.#usageOf(response)
    const output: unknown = response['output']
    if (Array.isArray(output)) this.outputBytesSeen = Math.max(this.outputBytesSeen, outputTextBytes(output))
    const billed = this.#billedUsage?.(this.usage, this.outputBytesSeen)
    const mended = mendedUsage(response['usage'], this.usage, billed, this.#isBilled)
    this.keptAnswer = {
      ...response,
      model: this.#publicModel,
      ...(mended === undefined ? {} : { usage: mended }),
      ...this.#ownMembers,
    }
    this.closing =
      (mended === undefined && this.#passes ? this.#withModel(event, response['model']) : undefined) ??
      Buffer.from(sseEvent(String(value['type']), JSON.stringify({ ...value, response: this.keptAnswer })))
    this.hasContent = true
    this.drop()
    this.finish()
  }

  /** Returns the bytes of the event with the model replaced, or `undefined` if its place is uncertain. */
  #withModel({ bytes, start, end, dataStart, dataEnd, hasOneLine }: EventLines, model: unknown): Buffer | undefined {
    const span = hasOneLine ? findKnownString(bytes, ['response', 'model'], model, dataStart, dataEnd) : undefined
    if (span === undefined) return undefined
    const publicModel = Buffer.from(JSON.stringify(this.#publicModel))
    return Buffer.concat([bytes.subarray(start, span.start), publicModel, bytes.subarray(span.end, end)])
  }

  #written(type: string, members: Record<string, unknown>): string {
    this.#lastNumber += 1
    return sseEvent(type, JSON.stringify({ type, sequence_number: this.#lastNumber, ...members }))
  }
}

/** Returns the bytes of generated text in an event: a delta, or the name of a call that begins. */
function textBytesOf(delta: unknown, item: unknown): number {
  const name: unknown = isJsonObject(item) ? item['name'] : undefined
  const text = typeof delta === 'string' ? delta : name
  return typeof text === 'string' ? Buffer.byteLength(text) : 0
}
