import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { type Clock, systemClock } from '../core/clock.ts'
import { checkGivenMembers, type MemberNames } from '../core/known-members.ts'
import type { Logger } from '../core/logger.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { Usage } from '../core/usage.ts'
import type { TextKind, TextPart, TextRole } from '../endpoints/texts.ts'
import type { EndpointId, Hook, HookAnswer, HookCall, HookFacts, TextWindow } from './hook.ts'
import { Redactor } from './redact.ts'
import type { RedactionRule } from './redaction-rules.ts'

/** One text of a captured request or answer. */
export interface CapturedText {
  /** Its place, such as `messages[0].content`. */
  readonly id: string
  /** What kind of text it is. */
  readonly kind: TextKind
  /** Who wrote it; absent where the endpoint has no roles. */
  readonly role?: TextRole | undefined
  /** After `redact`. */
  readonly text: string
}

/** What was captured: a request, a whole answer, or one text of a streamed answer. */
export interface CapturedRecord {
  /** `answer` is also one text of a streamed answer. */
  readonly type: 'request' | 'answer'
  /** Joins the records of one call. */
  readonly requestId: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** Endpoint id, such as `chat`. */
  readonly endpoint: string
  /** Public id of the model. */
  readonly model: string
  /** Id of the vendor, of answers only. */
  readonly vendor?: string | undefined
  /** The account that pays. */
  readonly accountId: string
  /** The key that called. */
  readonly keyId: string
  /** Tags of the call. */
  readonly tags: readonly string[]
  /** Did the caller ask for a stream? */
  readonly isStream: boolean
  /** In order; never empty. */
  readonly texts: readonly CapturedText[]
  /** Of whole answers, as the vendor reported it. */
  readonly usage?: Usage | undefined
  /** Does the end of the text lack: there was no room for it, or its caller left? A stream that breaks ends with what came. */
  readonly isCut: boolean
}

/** Where captured texts go, and how many. */
export interface CaptureOptions<Id extends EndpointId = EndpointId> {
  /**
   * Takes records in their order, as many as have come since it was called last. It is called again when what it returned has
   * resolved. Nobody waits for it; what it throws costs these records and is logged.
   */
  sink(records: readonly CapturedRecord[]): MaybePromise<void>
  /** Share of calls, above 0 and at most 1. Default 1. Request and answer of a call are captured both or neither. */
  readonly sample?: number
  /** Taken out before anything is kept. Default: nothing. */
  readonly redact?: readonly RedactionRule[]
  /** Most bytes of texts that wait for the sink or for their end. Beyond it new ones are dropped. Default 8 MiB. */
  readonly maxBytes?: number
  /** Default: requests and answers. */
  readonly on?: readonly ('request' | 'answer')[]
  /** Default: all whose texts can be read. */
  readonly endpoints?: readonly Id[]
  /** Said in events. Default `capture`. */
  readonly name?: string
  /** Told of every record that was dropped since it was told last. Default: the log only. */
  onDropped?(count: number, reason: 'full' | 'sink-failed'): void
}

const CAPTURE_OPTIONS = {
  sink: true,
  sample: true,
  redact: true,
  maxBytes: true,
  on: true,
  endpoints: true,
  name: true,
  onDropped: true,
} satisfies MemberNames<CaptureOptions>

const DEFAULT_MAX_BYTES = 8 * 1024 * 1024

/** What a record weighs beside its texts. */
const RECORD_BYTES = 512

/** A text that nothing was added to for this time is written as it is: its caller has left. */
const LONGEST_PAUSE_MS = 10 * 60_000

/**
 * A hook that gives texts of requests and answers to a sink: a log of prompts. It changes and delays nothing; a slow or failing sink
 * costs records, which are counted, and never a call. Streams are not held back: each of their texts is a record when it has ended.
 * What still waits is written when the gateway closes. Put it behind hooks that rewrite requests to capture what vendors read, and
 * before those that rewrite answers to capture what callers read: answers pass hooks in reverse.
 * @throws TypeError for an unknown or unusable member, naming it.
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
    // A log that fails stops no call.
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

/** The same number from 0 to 1 for the same call. */
function shareOf(requestId: string): number {
  return createHash('sha256').update(requestId).digest().readUInt32BE(0) / 2 ** 32
}

/** A text of a stream that has not ended. */
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
    // The one that was touched last stands last.
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

  /** Writes everything that waits. Resolves when the sink has taken it or failed. */
  async close(): Promise<void> {
    for (const [key, open] of [...this.#open]) this.#close(key, { ...open, isCut: true })
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
    const [text = ''] = this.#redacted([{ kind: part.kind, text: pieces.join('') }])
    this.#enqueue({ ...head, texts: [{ ...part, text }], isCut }, bytes)
  }

  #closeIdle(nowMs: number): void {
    for (const [key, open] of this.#open) {
      // The clock was set back: it may go on, and has the whole time again.
      if (open.touchedAtMs > nowMs) open.touchedAtMs = nowMs
      else if (nowMs - open.touchedAtMs < LONGEST_PAUSE_MS) return
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
    // Not within the call.
    if (this.#writing === undefined)
      this.#writing = new Promise((resolve) => setImmediate(resolve)).then(() => this.#next())
  }

  #write(): void {
    this.#writing ??= this.#next()
  }

  /** Gives the sink what waits, once it has taken what it was given before. Never rejects. */
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

  #drop(count: number, reason: 'full' | 'sink-failed', error?: unknown): void {
    const isFirst = this.#dropped === 0
    this.#dropped += count
    // The first at once, and all of them when the sink has caught up.
    if (isFirst || reason === 'sink-failed')
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
