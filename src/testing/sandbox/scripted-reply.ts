import type { Clock, Timer } from '../../core/clock.ts'
import { type Fault, faultOf } from './fault.ts'
import { hasContent, type ScriptedTurn } from './model/chat-turn.ts'
import { names } from './request-fields.ts'
import type { IncomingCall, ReplyPiece, SandboxCall, SandboxReply } from './sandbox-operation.ts'

/** The vendor's rejection in place of an answer. */
export interface ScriptedError {
  /** HTTP status, 400 to 599, with the vendor's body for it. */
  readonly status: number
  /** Text of the error. Defaults to the vendor's usual text for the status. */
  readonly message?: string
  readonly retryAfterSeconds?: number
}

/** Conditions for the calls that a scripted reply answers. All given ones must match. */
export interface ReplyCondition {
  /** Vendor of the call; see {@link SandboxCall.vendor}. */
  readonly vendor?: string
  /** Operation of the call; see {@link SandboxCall.operation}. */
  readonly operation?: string
  /** The vendor's own id of the model. */
  readonly model?: string
  /** Text to find in the user's last text, or in the text to embed, draw or speak. */
  readonly text?: string | RegExp
}

/** A reply that a test sets for the stand-ins. */
export interface ScriptedReply extends ScriptedTurn {
  /** Condition for the call. Default: the next call that the reply can answer, of any vendor. */
  readonly when?: ReplyCondition | ((call: SandboxCall) => boolean)
  /** Error in place of an answer, for every kind of model. */
  readonly error?: ScriptedError
  /** Delay before the reply, in milliseconds. */
  readonly afterMs?: number
  /** Number of calls that it answers. Default 1. `Infinity` answers all calls until `reset()`. */
  readonly times?: number
}

const MEMBERS = 'when text chunks toolCalls reasoning finishReason usage scores error afterMs times'.split(' ')

/** Operations in which a model speaks. */
const SPEAKING = names('chat completions responses transcriptions')

/** Operations of a model. Other operations, such as polls and downloads, get a reply only if it names them. */
const WORKING = new Set([...SPEAKING, ...names('embeddings rerank images image-edits speech videos moderations')])

/** The operation in which a model judges. */
const JUDGING = 'moderations'

/** The replies that are still queued. */
export type ReplyQueue = ReturnType<typeof replyQueue>

/** Creates an empty queue. */
export function replyQueue() {
  let waiting: { readonly reply: ScriptedReply; timesLeft: number }[] = []
  return {
    /** @throws TypeError for an invalid reply. */
    add(reply: ScriptedReply): void {
      checkReply(reply)
      waiting.push({ reply, timesLeft: reply.times ?? 1 })
    },
    /** Returns the oldest reply that matches the call, if any. */
    take(call: SandboxCall, promptText: string): ScriptedReply | undefined {
      const found = waiting.find(({ reply }) => fits(reply, call, promptText))
      if (found === undefined) return undefined
      found.timesLeft--
      waiting = waiting.filter(({ timesLeft }) => timesLeft > 0)
      return found.reply
    },
    clear(): void {
      waiting = []
    },
  }
}

function fits(reply: ScriptedReply, call: SandboxCall, promptText: string): boolean {
  const { when = {} } = reply
  const named = typeof when === 'function' ? undefined : when.operation
  if (reply.scores !== undefined) {
    if (call.operation !== JUDGING) return false
  } else if (isSpoken(reply)) {
    if (!SPEAKING.has(call.operation)) return false
  } else if (named === undefined && !WORKING.has(call.operation)) return false
  if (typeof when === 'function') return when(call)
  const { vendor = call.vendor, operation = call.operation, model = call.model, text = '' } = when
  if (vendor !== call.vendor || operation !== call.operation || model !== call.model) return false
  return typeof text === 'string' ? promptText.includes(text) : promptText.search(text) !== -1
}

function isSpoken(reply: ScriptedReply): boolean {
  return hasContent(reply) || reply.usage !== undefined
}

function checkReply(reply: ScriptedReply): void {
  const unknown = Object.keys(reply).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined)
    throw new TypeError(`reply: there is no member ${JSON.stringify(unknown)}; it has ${MEMBERS.join(', ')}`)
  const { text, chunks, scores, error, afterMs, times = 1 } = reply
  if (!isSpoken(reply) && scores === undefined && error === undefined && afterMs === undefined)
    throw new TypeError('reply: say text, chunks, toolCalls, reasoning, finishReason, usage, scores, error or afterMs')
  if (scores !== undefined && (isSpoken(reply) || error !== undefined))
    throw new TypeError('reply: scores are the whole of an answer of moderation')
  if (!Object.values(scores ?? {}).every((score) => score >= 0 && score <= 1))
    throw new TypeError('reply: scores must be numbers from 0 to 1')
  if (text !== undefined && chunks !== undefined) throw new TypeError('reply: text and chunks are the same; give one')
  if (error !== undefined && isSpoken(reply)) throw new TypeError('reply: error takes the place of an answer')
  if (error !== undefined && !(Number.isInteger(error.status) && error.status >= 400 && error.status <= 599))
    throw new TypeError('reply: error.status must be a whole number from 400 to 599')
  if (afterMs !== undefined && !(afterMs >= 0 && Number.isFinite(afterMs)))
    throw new TypeError('reply: afterMs must be a number of at least 0')
  if (!(times === Number.POSITIVE_INFINITY || (Number.isInteger(times) && times >= 1)))
    throw new TypeError('reply: times must be a whole number above 0, or Infinity')
}

/** The vendor's side of one connection, over a socket or in process. */
export interface VendorConnection {
  /** True once the caller is gone or the answer has ended; everything is then ignored. */
  readonly closed: boolean
  /** Sends status and headers (a flat list: name, value, name, value). */
  head(status: number, headers: readonly string[]): void
  /** Sends bytes. False means: stop until `onDrain`. */
  write(bytes: Uint8Array): boolean
  /** Ends the answer cleanly. */
  end(): void
  /** Breaks the connection, after the bytes written so far were sent. */
  reset(): void
  /** Breaks the connection as if it had never been opened, if the transport can do that. */
  refuse(): void
  /** Calls back when writing may resume after `write` returned false. One listener. */
  onDrain(listener: () => void): void
  /** Calls back once if the caller disconnects before the answer has ended. One listener. */
  onDisconnect(listener: () => void): void
}

/** Handles a call that has arrived completely. */
export type CallReceiver = (call: IncomingCall, connection: VendorConnection) => void

/** One thing that the server side of a connection does. */
type DeliveryStep =
  | { readonly kind: 'head'; readonly status: number; readonly headers: readonly string[] }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'wait'; readonly delayMs: number }
  /** Nothing more happens, and the connection stays. */
  | { readonly kind: 'hang' }
  /** No connection is made. */
  | { readonly kind: 'refuse' }
  /** The connection breaks. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'end' }

// Node's timers overflow above this.
const MAX_DELAY_MS = 2 ** 31 - 1

// Without a pause, an endless body would block the process.
const ENDLESS_PAUSE_MS = 5
const ENDLESS_BLOCK = Buffer.alloc(64 * 1024, ' ')

/**
 * Returns the steps that send an answer, including faults of delivery. May be endless.
 * @param eventDelayMs Delay before each event of a stream, in milliseconds.
 */
export function* deliverySteps(
  reply: SandboxReply,
  faults: readonly Fault[],
  eventDelayMs: number,
): Generator<DeliveryStep, void, undefined> {
  const delay = faultOf(faults, 'delay')
  if (delay !== undefined) yield { kind: 'wait', delayMs: delay.delayMs }
  for (const kind of ['refuse', 'reset', 'hang'] as const)
    if (faultOf(faults, kind) !== undefined) return yield { kind }

  const body = shownBody(reply, faults)
  const wholeLength =
    body.ending === 'end' && !reply.streamed ? ['content-length', String(byteLength(body.pieces))] : []
  yield { kind: 'head', status: reply.status, headers: [...reply.headers, ...wholeLength] }

  const pause = reply.streamed ? (faultOf(faults, 'pace')?.delayMs ?? eventDelayMs) : 0
  for (const piece of body.pieces) {
    if (pause > 0) yield { kind: 'wait', delayMs: pause }
    yield* pieceSteps(bytesOf(piece), faults)
  }
  if (body.ending !== 'endless') return yield { kind: body.ending === 'cut' ? 'end' : body.ending }
  const filler = reply.filler === undefined ? ENDLESS_BLOCK : Buffer.from(reply.filler)
  for (;;) {
    yield { kind: 'wait', delayMs: Math.max(pause, ENDLESS_PAUSE_MS) }
    yield { kind: 'bytes', bytes: filler }
  }
}

interface ShownBody {
  readonly pieces: readonly ReplyPiece[]
  /** With `cut`, the body ends cleanly but incomplete, so no length may be announced. */
  readonly ending: 'end' | 'cut' | 'hang' | 'reset' | 'endless'
}

/** Faults that send a part of the body, and how it ends. */
const CUTS = [
  ['hang-body', 'hang'],
  ['reset-mid-stream', 'reset'],
  ['end-early', 'cut'],
] as const

/** How much of the body is sent, and how it ends. */
function shownBody(reply: SandboxReply, faults: readonly Fault[]): ShownBody {
  for (const [kind, ending] of CUTS) {
    const fault = faultOf(faults, kind)
    if (fault !== undefined) return { pieces: beginning(reply, fault.events ?? 1), ending }
  }
  if (faultOf(faults, 'half-json') !== undefined) {
    const [first, second = ''] = reply.pieces
    return { pieces: reply.streamed ? [first ?? '', half(second)] : beginning(reply, 1), ending: 'cut' }
  }
  if (faultOf(faults, 'endless') !== undefined)
    return { pieces: reply.streamed ? reply.pieces.slice(0, 1) : beginning(reply, 1), ending: 'endless' }
  return { pieces: reply.pieces, ending: 'end' }
}

function beginning(reply: SandboxReply, events: number): ReplyPiece[] {
  return reply.streamed ? reply.pieces.slice(0, events) : [half(Buffer.concat(reply.pieces.map(bytesOf)))]
}

function half(piece: ReplyPiece): Uint8Array {
  const bytes = bytesOf(piece)
  return bytes.subarray(0, Math.floor(bytes.length / 2))
}

function bytesOf(piece: ReplyPiece): Uint8Array {
  return typeof piece === 'string' ? Buffer.from(piece) : piece
}

function byteLength(pieces: readonly ReplyPiece[]): number {
  return pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
}

function* pieceSteps(piece: Uint8Array, faults: readonly Fault[]): Generator<DeliveryStep, void, undefined> {
  const slow = faultOf(faults, 'slow')
  const size = slow !== undefined ? (slow.bytes ?? 16) : (faultOf(faults, 'cut')?.bytes ?? piece.length)
  for (let start = 0; start < piece.length; start += size) {
    if (slow !== undefined) yield { kind: 'wait', delayMs: slow.delayMs }
    yield { kind: 'bytes', bytes: piece.subarray(start, start + size) }
  }
}

/**
 * Runs the steps on a connection, with their waits and its backpressure.
 * @returns A function that stops it and its timer, for when the caller disconnects.
 */
export function playSteps(
  steps: Iterator<DeliveryStep, void, undefined>,
  connection: VendorConnection,
  clock: Clock,
): () => void {
  let timer: Timer | undefined
  let alive: ReturnType<typeof setTimeout> | undefined
  let stopped = false

  const play = (): void => {
    clearTimeout(alive)
    while (!stopped && !connection.closed) {
      const { value: step } = steps.next()
      if (!step || !carryOut(step)) return
    }
  }

  /** Returns whether the next step may follow immediately. */
  const carryOut = (step: DeliveryStep): boolean => {
    switch (step.kind) {
      case 'head':
        connection.head(step.status, step.headers)
        return true
      case 'bytes':
        return connection.write(step.bytes)
      case 'wait':
        timer = clock.schedule(step.delayMs, play)
        // The clock's timers keep no process alive. In process no socket does either, and a script that awaits the answer would end.
        alive = setTimeout(() => undefined, Math.min(step.delayMs, MAX_DELAY_MS))
        return false
      case 'hang':
        return false
      case 'end':
      case 'reset':
      case 'refuse':
        connection[step.kind]()
        return false
    }
  }

  connection.onDrain(play)
  play()
  return () => {
    stopped = true
    timer?.cancel()
    clearTimeout(alive)
  }
}
