import { type Fault, faultOf } from '../faults/fault.ts'
import type { ReplyPiece, SandboxReply } from '../sandbox-operation.ts'

/** One thing that the server side of a connection does. */
export type DeliveryStep =
  | { readonly kind: 'head'; readonly status: number; readonly headers: readonly string[] }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'wait'; readonly delayMs: number }
  /** Nothing more happens, and the connection stays. */
  | { readonly kind: 'hang' }
  /** No connection comes about. */
  | { readonly kind: 'refuse' }
  /** The connection breaks. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'end' }

// Without a wait an endless body would keep the process from doing anything else.
const ENDLESS_PAUSE_MS = 5
const ENDLESS_BLOCK = Buffer.alloc(64 * 1024, ' ')

/**
 * The steps by which an answer is sent, faults of delivery included. May be endless.
 * @param eventDelayMs Wait before each event of a stream.
 */
export function* deliverySteps(
  reply: SandboxReply,
  faults: readonly Fault[],
  eventDelayMs: number,
): Generator<DeliveryStep, void, undefined> {
  const delay = faultOf(faults, 'delay')
  if (delay !== undefined) yield { kind: 'wait', delayMs: delay.delayMs }
  if (faultOf(faults, 'refuse') !== undefined) return yield { kind: 'refuse' }
  if (faultOf(faults, 'reset') !== undefined) return yield { kind: 'reset' }
  if (faultOf(faults, 'hang') !== undefined) return yield { kind: 'hang' }

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
  /** `cut`: ends cleanly though it is not whole, so that no length may be announced. */
  readonly ending: 'end' | 'cut' | 'hang' | 'reset' | 'endless'
}

/** How much of the body is sent, and what comes after it. */
function shownBody(reply: SandboxReply, faults: readonly Fault[]): ShownBody {
  const hang = faultOf(faults, 'hang-body')
  if (hang !== undefined) return { pieces: beginning(reply, hang.events ?? 1), ending: 'hang' }
  const reset = faultOf(faults, 'reset-mid-stream')
  if (reset !== undefined) return { pieces: beginning(reply, reset.events ?? 1), ending: 'reset' }
  const early = faultOf(faults, 'end-early')
  if (early !== undefined) return { pieces: beginning(reply, early.events ?? 1), ending: 'cut' }
  if (faultOf(faults, 'half-json') !== undefined) {
    const [first, second = ''] = reply.pieces
    return { pieces: reply.streamed ? [first ?? '', half(second)] : beginning(reply, 1), ending: 'cut' }
  }
  if (faultOf(faults, 'endless') !== undefined) {
    return { pieces: reply.streamed ? reply.pieces.slice(0, 1) : beginning(reply, 1), ending: 'endless' }
  }
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
