import { Buffer } from 'node:buffer'
import { isJsonObject } from '../../core/json.ts'
import type { Usage } from '../../core/usage.ts'
import { parseAnswerJson } from '../../endpoints/answer-json.ts'
import type { MessagesRequest } from '../../endpoints/messages/messages-request.ts'
import type { EventLines } from '../../wire/event-splitter.ts'
import { closingQuote, decodedByteLength, startsWith } from '../../wire/json-cursor.ts'
import { sseEvent } from '../../wire/sse.ts'
import { latestUsage, normalisedUsage, readMessagesUsage } from '../shared/messages-usage.ts'
import { PassThroughStream } from '../shared/pass-through-stream.ts'
import type { AnswerIds, VendorCall, VendorFailure } from '../vendor.ts'
import { blockTextBytes } from './block-text-bytes.ts'

/** Reads a `type: "error"` object of a stream. */
type StreamErrorReader = (event: unknown) => VendorFailure

/** The most frequent event of a stream. It is passed on unread. */
const DELTA_EVENT = 'content_block_delta'
/** Start of such an event as the vendor writes it. Other spellings are parsed. */
const DELTA_START = Buffer.from(`event: ${DELTA_EVENT}\ndata: `)
const LINE_FEED = 0x0a

/** Prefix of generated text in a delta. Signatures and citations do not count. */
const DELTA_MEMBER = Buffer.from('"delta":{"type":"')
const DELTA_TEXTS: readonly Buffer[] = [
  Buffer.from('text_delta","text":"'),
  Buffer.from('input_json_delta","partial_json":"'),
  Buffer.from('thinking_delta","thinking":"'),
]

/**
 * Passes a streamed message on (Anthropic, "Streaming messages"): the vendor's bytes go through event by event, including pings,
 * comments and unknown events. Only `model` in `message_start` is replaced. Errors are removed, and so is an end mark of another
 * dialect, which proxies add and clients cannot read.
 */
export class MessagesPassThrough extends PassThroughStream {
  readonly #publicModel: string
  readonly #readError: StreamErrorReader
  readonly #isInThread: boolean
  answerIds: AnswerIds | undefined
  #counts = readMessagesUsage(undefined)
  #isBetweenBlocks = false

  constructor(
    call: Pick<VendorCall<MessagesRequest>, 'publicModel' | 'conversation'>,
    readError: StreamErrorReader,
    maxEventBytes?: number,
  ) {
    super(maxEventBytes)
    this.#publicModel = call.publicModel
    this.#isInThread = call.conversation !== undefined
    this.#readError = readError
  }

  /** Returned chunks contain only whole events. */
  override get atBoundary(): boolean {
    return true
  }

  override get hasTextEnded(): boolean {
    return this.#isBetweenBlocks
  }

  get usage(): Usage | undefined {
    return normalisedUsage(this.#counts)
  }

  protected override skipEvent(bytes: Buffer, start: number): number {
    if (!startsWith(bytes, start, DELTA_START)) return -1
    const lineEnd = bytes.indexOf(LINE_FEED, start + DELTA_START.length)
    if (lineEnd === -1 || bytes[lineEnd + 1] !== LINE_FEED) return -1
    const textBytes = deltaBytes(bytes, start + DELTA_START.length, lineEnd)
    if (textBytes === undefined) return -1
    this.countContent(textBytes)
    return lineEnd + 2
  }

  protected readEvent(event: EventLines, isRest: boolean): void {
    const { name } = event
    const value = parseAnswerJson(event.text)
    if (isJsonObject(value)) this.#read(value, value['type'] ?? name)
    else if (event.isEndMark) this.drop()
    else if (name === 'error' && !isRest) this.fail(this.#readError({}))
    else this.failUnreadable(isRest)
  }

  #read(value: Record<string, unknown>, type: unknown): void {
    switch (type) {
      case 'message_start':
        this.#readStart(value)
        return
      case 'content_block_start':
        this.#isBetweenBlocks = false
        if (startsWithContent(value['content_block'])) this.countContent(blockTextBytes(value['content_block']))
        return
      case DELTA_EVENT:
        this.countContent(blockTextBytes(value['delta']))
        return
      case 'content_block_stop':
        this.#isBetweenBlocks = true
        return
      case 'message_delta':
        this.#counts = latestUsage(this.#counts, readMessagesUsage(value['usage']))
        this.hasContent = true
        return
      case 'message_stop':
        this.finish()
        return
      case 'error':
        this.fail(this.#readError(value))
    }
  }

  #readStart(value: Record<string, unknown>): void {
    const { message } = value
    if (!isJsonObject(message)) return
    if (this.#isInThread) this.answerIds = threadIds(message)
    this.#counts = latestUsage(this.#counts, readMessagesUsage(message['usage']))
    const model = this.#publicModel
    if (message['model'] === model) return
    if (this.editString(['message', 'model'], message['model'], Buffer.from(JSON.stringify(model)))) return
    this.replaceEvent(
      Buffer.from(sseEvent('message_start', JSON.stringify({ ...value, message: { ...message, model } }))),
    )
  }
}

/** Returns the ids with which an answer can be continued. The caller gets the vendor's own id. */
export function threadIds({ id }: Record<string, unknown>): AnswerIds | undefined {
  return typeof id === 'string' ? { id, upstreamId: id } : undefined
}

/** Text and thinking begin empty. Tool calls and blocks that arrive whole are content immediately. */
function startsWithContent(block: unknown): boolean {
  return isJsonObject(block) && block['type'] !== 'text' && block['type'] !== 'thinking'
}

/** Returns the bytes of generated text in a delta event, `bytes[start, end)`, or `undefined` if it must be parsed. */
function deltaBytes(bytes: Buffer, start: number, end: number): number | undefined {
  const member = bytes.subarray(start, end).indexOf(DELTA_MEMBER)
  if (member === -1) return undefined
  const type = start + member + DELTA_MEMBER.length
  for (const text of DELTA_TEXTS) {
    if (!startsWith(bytes, type, text)) continue
    const open = type + text.length - 1
    const close = closingQuote(bytes, open, end)
    return close === -1 ? undefined : decodedByteLength(bytes, open + 1, close)
  }
  return undefined
}
