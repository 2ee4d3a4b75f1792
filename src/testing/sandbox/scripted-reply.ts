import { hasContent, type ScriptedTurn } from './model/scripted-turn.ts'
import type { SandboxCall } from './sandbox-operation.ts'

/** The vendor's refusal in place of an answer. */
export interface ScriptedError {
  /** HTTP status, 400 to 599. The vendor's body for it is sent. */
  readonly status: number
  /** Default: the vendor's usual text for the status. */
  readonly message?: string
  readonly retryAfterSeconds?: number
}

/** Which calls a scripted reply answers; all that are given must fit. */
export interface ReplyCondition {
  /** As {@link SandboxCall.vendor} has it. */
  readonly vendor?: string
  /** As {@link SandboxCall.operation} has it. */
  readonly operation?: string
  /** The vendor's own id of the model. */
  readonly model?: string
  /** In the user's last text, or in what is to be embedded, drawn or spoken. */
  readonly text?: string | RegExp
}

/** A reply that a test writes for the stand-ins. */
export interface ScriptedReply extends ScriptedTurn {
  /** Default: the next call that it can answer, of any vendor. */
  readonly when?: ReplyCondition | ((call: SandboxCall) => boolean)
  /** In place of an answer; for every kind of model. */
  readonly error?: ScriptedError
  /** The reply begins so many milliseconds later. */
  readonly afterMs?: number
  /** How many calls it answers; default 1. `Infinity`: all, until `reset()`. */
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

/** Operations in which a model speaks. */
const SPEAKING = new Set(['chat', 'completions', 'responses', 'transcriptions'])

/** Operations in which a model works; others, such as polls and downloads, are answered by a reply only if it names them. */
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

/** The replies that wait for calls. */
export interface ReplyQueue {
  /** @throws TypeError for a reply that cannot be given. */
  add(reply: ScriptedReply): void
  /** The oldest reply that fits the call; undefined when none does. */
  take(call: SandboxCall, promptText: string): ScriptedReply | undefined
  clear(): void
}

/** Makes an empty queue. */
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
