import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { type Clock, systemClock } from '../core/clock.ts'
import { checkGivenMembers, memberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { TextKind, TextPart, TextRole } from '../endpoints/texts.ts'
import type { EndpointId, Hook, HookAnswer, HookCall, HookFacts, TextWindow } from './hook.ts'
import { Redactor } from './redact.ts'
import type { RedactionRule } from './redaction-rules.ts'

/** Text of a captured request or answer. */
export interface CapturedText {
  /** Place of the text, such as `messages[0].content`. */
  readonly id: string
  /** Kind of the text. */
  readonly kind: TextKind
  /** Author of the text; undefined if the endpoint has no roles. */
  readonly role?: TextRole | undefined
  /** Text after `redact`. */
  readonly text: string
}

/** Captured request, whole answer, or text of a streamed answer. */
export interface CapturedRecord {
  /** Type of the record. `answer` includes texts of streamed answers. */
  readonly type: 'request' | 'answer'
  /** Id that connects the records of one call. */
  readonly requestId: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Id of the vendor; only for answers. */
  readonly vendor?: string | undefined
  /** Account that pays. */
  readonly accountId: string
  /** Key that made the call. */
  readonly keyId: string
  /** Tags of the call. */
  readonly tags: readonly string[]
  /** Whether the caller requested a stream. */
  readonly isStream: boolean
  /** Texts in order; never empty. */
  readonly texts: readonly CapturedText[]
  /** Usage that the vendor reported, for whole answers. */
  readonly usage?: Usage | undefined
  /** Whether the end of the text is missing because of no room or a disconnect. A broken stream ends with the text so far. */
  readonly isCut: boolean
}

/**
 * Reason why a record was dropped: `full` if it had no room, `sink-failed` if the sink threw, and `redaction-failed` if the
 * patterns of `redact` threw or took too long for a text of a stream.
 */
export type DropReason = 'full' | 'sink-failed' | 'redaction-failed'

/** Sink and limits of captured texts. */
export interface CaptureOptions<Id extends EndpointId = EndpointId> {
  /**
   * Receives records in order, all that have arrived since its last call. It is called again when its result has resolved. Calls
   * do not wait for it; if it throws, these records are lost and the error is logged.
   */
  sink(records: readonly CapturedRecord[]): MaybePromise<void>
  /** Share of calls, above 0 and at most 1. Default 1. Either both request and answer of a call are captured, or neither. */
  readonly sample?: number
  /** Rules for data to remove before a text is stored. Default none. */
  readonly redact?: readonly RedactionRule[]
  /** Maximum number of bytes of texts that wait for the sink or for their end. Additional ones are dropped. Default 8 MiB. */
  readonly maxBytes?: number
  /** Captured messages. Default: requests and answers. */
  readonly on?: readonly ('request' | 'answer')[]
  /** Ids of the endpoints to capture. Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Name of the hook in events. Default `capture`. */
  readonly name?: string
  /** Receives the number of records dropped since the previous call, and the reason. If omitted, they are only logged. */
  onDropped?(count: number, reason: DropReason): void
}

const CAPTURE_OPTIONS = memberNames<CaptureOptions>()('sink sample redact maxBytes on endpoints name onDropped')

const DEFAULT_MAX_BYTES = 8 * 1024 * 1024

/** Size in bytes that a record counts as in addition to its texts. */
const RECORD_BYTES = 512

/** Time without additions after which a text is written unfinished, because its caller has disconnected. */
const MAX_PAUSE_MS = 10 * 60_000

/**
 * Creates a hook that passes texts of requests and answers to a sink: a log of prompts. It changes and delays nothing; a slow or
 * failing sink costs records, which are counted, and never a call. Streams are not held back: each of their texts is a record
 * when it has ended. Waiting records are written when the gateway closes. Place the hook after hooks that rewrite requests to
 * capture what vendors read, and before hooks that rewrite answers to capture what callers read: answers pass hooks in reverse.
 * @throws TypeError with the unknown or unusable member.
 */
export function capture<Id extends EndpointId = EndpointId>(options: CaptureOptions<Id>): Hook<Id> {
  checkGivenMembers(options, CAPTURE_OPTIONS, 'capture')
  const { name = 'capture', endpoints, on = ['request', 'answer'], sample = 1 } = options
  if (typeof options.sink !== 'function') throw new TypeError('capture: sink must be a function')
  if (!(sample > 0 && sample <= 1)) throw new TypeError('capture: sample must be above 0 and at most 1')
  if (on.length === 0 || !on.every((point) => point === 'request' || point === 'answer'))
    throw new TypeError('capture: on must be a list of request and answer')
  const log = new CaptureLog(options)
  const takes = ({ requestId }: HookFacts): boolean => sample === 1 || shareOf(requestId) < sample
  const hook: Hook = {
    name,
    ...(endpoints && { endpoints }),
    // A failing log must not stop calls.
    onFailure: 'allow',
    ...(on.includes('request') && { request: (call: HookCall) => void (takes(call) && log.request(call)) }),
    ...(on.includes('answer') && {
      answer: (answer: HookAnswer) => void (takes(answer) && log.answer(answer)),
      text: {
        holdBack: { chars: 0 },
        check: (window: TextWindow) => void (takes(window) && log.window(window)),
      },
    }),
    start: (gateway) => log.start(gateway),
    close: () => log.close(),
  }
  return hook as unknown as Hook<Id>
}

/** Returns a number from 0 to 1 that is constant for a call. */
function shareOf(requestId: string): number {
  return createHash('sha256').update(requestId).digest().readUInt32BE(0) / 2 ** 32
}

/** Text of a stream that has not ended. */
interface OpenText {
  readonly head: Omit<CapturedRecord, 'texts' | 'isCut'>
  readonly part: Pick<TextPart, 'id' | 'kind'>
  readonly pieces: string[]
  bytes: number
  touchedAtMs: number
  isCut: boolean
}

interface Queued {
  readonly record: CapturedRecord
  readonly bytes: number
}

class CaptureLog {
  readonly #options: Omit<CaptureOptions, 'endpoints'>
  readonly #redactor: Redactor | undefined
  readonly #maxBytes: number
  readonly #open = new Map<string, OpenText>()
  #queue: Queued[] = []
  #bytes = 0
  #dropped = 0
  #logger: Logger | undefined
  #clock = systemClock
  #writing: Promise<void> | undefined

  constructor(options: Omit<CaptureOptions, 'endpoints'>) {
    const { redact, maxBytes = DEFAULT_MAX_BYTES } = options
    if (!(Number.isSafeInteger(maxBytes) && maxBytes > 0))
      throw new TypeError('capture: maxBytes must be a whole number of bytes')
    this.#options = options
    this.#redactor = redact === undefined ? undefined : new Redactor(redact)
    this.#maxBytes = maxBytes
  }

  start({ logger, clock }: { readonly logger: Logger; readonly clock: Clock }): void {
    this.#logger = logger
    this.#clock = clock
  }

  request(call: HookCall): void {
    const texts = call.texts()
    this.#add(headOf('request', call, call.isStream, this.#clock.now()), texts)
  }

  answer(answer: HookAnswer): void {
    const { usage, vendor } = answer
    this.#add({ ...headOf('answer', answer, answer.isStream, this.#clock.now()), vendor, usage }, answer.texts())
  }

  window(window: TextWindow): void {
    const nowMs = this.#clock.now()
    this.#closeIdle(nowMs)
    const key = `${window.requestId} ${window.id}`
    const fresh = window.held + window.fresh
    let open = this.#open.get(key)
    if (open === undefined) {
      if (!this.#hasRoom(RECORD_BYTES)) {
        this.#drop(1, 'full')
        return
      }
      const head = { ...headOf('answer', window, true, nowMs), vendor: window.vendor }
      const part = { id: window.id, kind: window.kind }
      open = { head, part, pieces: [], bytes: RECORD_BYTES, touchedAtMs: nowMs, isCut: false }
      this.#bytes += RECORD_BYTES
    }
    // Ordered by the last addition, newest last.
    this.#open.delete(key)
    this.#open.set(key, open)
    open.touchedAtMs = nowMs
    const bytes = Buffer.byteLength(fresh)
    if (!open.isCut && this.#hasRoom(bytes)) {
      open.pieces.push(fresh)
      open.bytes += bytes
      this.#bytes += bytes
    } else open.isCut = true
    if (window.isLast) this.#close(key, open)
  }

  /** Writes all waiting records. Resolves when the sink has processed them or failed. */
  async close(): Promise<void> {
    for (const [key, open] of [...this.#open]) {
      this.#close(key, { ...open, isCut: true })
      // Each text may use the whole time limit of the patterns, and the gateway waits for hooks only as long as its timer allows.
      await new Promise((resolve) => setImmediate(resolve))
    }
    while (this.#queue.length > 0 || this.#writing !== undefined) {
      this.#write()
      await this.#writing
    }
  }

  #add(head: Omit<CapturedRecord, 'texts' | 'isCut'>, parts: readonly TextPart[]): void {
    let bytes = RECORD_BYTES
    for (const { text } of parts) bytes += Buffer.byteLength(text)
    if (!this.#hasRoom(bytes)) {
      this.#drop(1, 'full')
      return
    }
    const redacted = this.#redacted(parts)
    const texts = parts.map(({ id, kind, role }, at) => ({ id, kind, role, text: redacted[at]! }))
    this.#enqueue({ ...head, texts, isCut: false }, bytes)
  }

  #close(key: string, { head, part, pieces, bytes, isCut }: OpenText): void {
    this.#open.delete(key)
    this.#bytes -= bytes
    try {
      const [text = ''] = this.#redacted([{ kind: part.kind, text: pieces.join('') }])
      this.#enqueue({ ...head, texts: [{ ...part, text }], isCut }, bytes)
    } catch (error) {
      // The text may belong to another call, or the gateway is closing: an error would stop unrelated work.
      this.#drop(1, 'redaction-failed', error)
    }
  }

  #closeIdle(nowMs: number): void {
    for (const [key, open] of this.#open) {
      // The clock was set back: the text may still grow, so its time restarts.
      if (open.touchedAtMs > nowMs) open.touchedAtMs = nowMs
      else if (nowMs - open.touchedAtMs < MAX_PAUSE_MS) return
      else this.#close(key, { ...open, isCut: true })
    }
  }

  #redacted(parts: readonly Pick<TextPart, 'kind' | 'text'>[]): readonly string[] {
    return this.#redactor?.all(parts) ?? parts.map(({ text }) => text)
  }

  #hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes
  }

  #enqueue(record: CapturedRecord, bytes: number): void {
    this.#queue.push({ record, bytes })
    this.#bytes += bytes
    // Deferred, so that the call does not wait.
    if (this.#writing === undefined)
      this.#writing = new Promise((resolve) => setImmediate(resolve)).then(() => this.#next())
  }

  #write(): void {
    this.#writing ??= this.#next()
  }

  /** Passes the waiting records to the sink, after the previous ones. Never rejects. */
  async #next(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      try {
        const taken = this.#options.sink(batch.map(({ record }) => record))
        if (isPending(taken)) await taken
      } catch (error) {
        this.#drop(batch.length, 'sink-failed', error)
      }
      for (const { bytes } of batch) this.#bytes -= bytes
    }
    this.#writing = undefined
    if (this.#dropped > 0) this.#tellDropped()
  }

  #drop(count: number, reason: DropReason, error?: unknown): void {
    const isFirst = this.#dropped === 0
    this.#dropped += count
    // Logs the first one immediately, and the total when the sink has caught up.
    if (isFirst || reason !== 'full')
      this.#logger?.warn('captured records were dropped', { reason, count: this.#dropped, error })
    try {
      this.#options.onDropped?.(count, reason)
    } catch (fault) {
      this.#logger?.warn('capture: onDropped threw', { error: fault })
    }
  }

  #tellDropped(): void {
    this.#logger?.warn('captured records were dropped until the sink had room', { count: this.#dropped })
    this.#dropped = 0
  }
}

function headOf(
  type: 'request' | 'answer',
  { requestId, model, principal, tags, ...facts }: HookFacts,
  isStream: boolean,
  atMs: number,
): Omit<CapturedRecord, 'texts' | 'isCut'> {
  const { endpoint } = facts as unknown as { readonly endpoint: string }
  const { accountId, keyId } = principal
  return { type, requestId, atMs, endpoint, model, accountId, keyId, tags, isStream }
}
