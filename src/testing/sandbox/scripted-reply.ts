import { hasContent, type ScriptedTurn } from './model/scripted-turn.ts'
import type { SandboxCall } from './sandbox-operation.ts'

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

const MEMBERS: readonly string[] = [
  'when',
  'text',
  'chunks',
  'toolCalls',
  'reasoning',
  'finishReason',
  'usage',
  'scores',
  'error',
  'afterMs',
  'times',
] satisfies (keyof ScriptedReply)[]

/** Operations in which a model generates text. */
const SPEAKING = new Set(['chat', 'responses', 'transcriptions'])

/** Operations of a model. Other operations, such as polls and downloads, get a reply only if it names them. */
const WORKING = new Set([
  ...SPEAKING,
  'embeddings',
  'rerank',
  'images',
  'image-edits',
  'speech',
  'videos',
  'moderations',
])

/** The operation in which a model judges. */
const JUDGING = 'moderations'

/** The replies that are still queued. */
export interface ReplyQueue {
  /** @throws TypeError for an invalid reply. */
  add(reply: ScriptedReply): void
  /** Returns the oldest reply that matches the call, if any. */
  take(call: SandboxCall, promptText: string): ScriptedReply | undefined
  clear(): void
}

/** Creates an empty queue. */
export function replyQueue(): ReplyQueue {
  let waiting: { readonly reply: ScriptedReply; timesLeft: number }[] = []
  return {
    add(reply) {
      checkReply(reply)
      waiting.push({ reply, timesLeft: reply.times ?? 1 })
    },
    take(call, promptText) {
      const found = waiting.find(({ reply }) => fits(reply, call, promptText))
      if (found === undefined) return undefined
      found.timesLeft--
      waiting = waiting.filter(({ timesLeft }) => timesLeft > 0)
      return found.reply
    },
    clear() {
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
