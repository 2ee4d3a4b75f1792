import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { TextPart, TextStreamReader } from '../endpoints/texts.ts'
import type { HookFault, HookOutcome } from './call-hook.ts'
import type { CheckedDenial } from './denial.ts'
import type { TextVerdict } from './hook.ts'
import type { CompiledHook } from './hook-table.ts'
import {
  endsIn,
  MAX_HELD_CHARACTERS,
  moreOf,
  rewrite,
  StreamDenial,
  type StreamWork,
  type TextEvent,
  type TextStage,
} from './text-events.ts'

/** Most characters of what stands before a window that its hook is shown. */
const MAX_BEFORE = 64

/** What a window of a text shows, beside the facts of the call. */
export interface WindowText extends Pick<TextPart, 'id' | 'kind' | 'index'> {
  readonly before: string
  readonly held: string
  readonly fresh: string
  readonly isLast: boolean
}

/** What a stage needs of the call that it works for. */
export interface WindowCall {
  check(hook: CompiledHook, window: WindowText): MaybePromise<HookOutcome<TextVerdict>>
  denied(hook: CompiledHook, denial: unknown): CheckedDenial
  /** Undefined: it passes. */
  failed(hook: CompiledHook, fault: HookFault, error: unknown): CheckedDenial | undefined
}

/** One text of the answer: of one choice, block or item, and of one kind. */
interface Channel {
  readonly id: string
  before: string
  held: string
  fresh: string
  sent: string
  /** The event that has added to it last, to be written once more with another text. */
  last: TextEvent
  part: TextPart
  /** Events of this read whose text is `fresh`. */
  waiting: number
  isPassed: boolean
}

/** Shows a hook each text of a stream in windows, and lets go what it may. */
export class WindowStage implements TextStage {
  readonly #hook: CompiledHook
  readonly #keep: number
  readonly #call: WindowCall
  readonly #reader: TextStreamReader
  readonly #open = new Map<string, Channel>()
  readonly #sent = new Map<string, string>()
  #heldCharacters = 0

  constructor(hook: CompiledHook, call: WindowCall, reader: TextStreamReader) {
    this.#hook = hook
    this.#call = call
    this.#reader = reader
    const { holdBack = 'all' } = hook.hook.text ?? {}
    this.#keep = holdBack === 'all' ? Number.POSITIVE_INFINITY : holdBack.chars
  }

  sentOf(id: string): string | undefined {
    return this.#open.get(id)?.sent ?? this.#sent.get(id)
  }

  *push(events: readonly TextEvent[]): StreamWork<TextEvent[]> {
    const out: TextEvent[] = []
    const dirty = new Set<Channel>()
    for (const event of events) {
      const [only] = event.added
      if (event.step.isBare && event.added.length === 1 && only !== undefined && event.step.ended.length === 0) {
        const channel = this.#take(event, only)
        channel.waiting += 1
        dirty.add(channel)
        continue
      }
      yield* this.#closeBefore(event, out)
      for (const part of event.added) {
        const channel = this.#take(event, part)
        const isLast = endsIn(event, part.id)
        rewrite(event, part, yield* this.#release(channel, isLast), this.#reader)
        if (isLast) this.#close(channel)
      }
      for (const part of event.repeated) yield* this.#repeat(event, part)
      out.push(event)
    }
    for (const channel of dirty) if (channel.waiting > 0) yield* this.#goOn(channel, false, out)
    return out
  }

  *end(): StreamWork<TextEvent[]> {
    const out: TextEvent[] = []
    for (const channel of [...this.#open.values()]) {
      yield* this.#goOn(channel, true, out)
      this.#close(channel)
    }
    return out
  }

  #take(event: TextEvent, part: TextPart): Channel {
    const known = this.#open.get(part.id)
    if (known !== undefined) {
      known.fresh += part.text
      known.last = event
      known.part = part
      return known
    }
    const { id, text: fresh } = part
    const channel = { id, before: '', held: '', fresh, sent: '', last: event, part, waiting: 0, isPassed: false }
    this.#open.set(id, channel)
    return channel
  }

  #close(channel: Channel): void {
    this.#open.delete(channel.id)
    if (this.#reader.repeats === true) this.#sent.set(channel.id, channel.sent)
  }

  /** Texts end before the event that closes them, unless it adds to them once more. */
  *#closeBefore(event: TextEvent, out: TextEvent[]): StreamWork<void> {
    if (event.step.ended.length === 0) return
    for (const channel of [...this.#open.values()]) {
      if (!endsIn(event, channel.id) || event.added.some(({ id }) => id === channel.id)) continue
      yield* this.#goOn(channel, true, out)
      this.#close(channel)
    }
  }

  /** What may go of a text, in an event of its own. */
  *#goOn(channel: Channel, isLast: boolean, out: TextEvent[]): StreamWork<void> {
    const { waiting, last, part } = channel
    const text = yield* this.#release(channel, isLast)
    if (text === '') return
    // Nothing was changed and nothing held back: the event as it came.
    out.push(waiting === 1 && text === part.text ? last : moreOf(last, part, text, this.#reader))
  }

  /** A text that was given in parts is repeated as it was sent; one that comes as a whole for the first time is looked at now. */
  *#repeat(event: TextEvent, part: TextPart): StreamWork<void> {
    let sent = this.sentOf(part.id)
    if (sent === undefined) {
      const channel = this.#take(event, part)
      sent = yield* this.#release(channel, true)
      this.#close(channel)
    }
    rewrite(event, part, sent, this.#reader)
  }

  *#release(channel: Channel, isLast: boolean): StreamWork<string> {
    const { held, fresh, before } = channel
    const text = held + fresh
    channel.waiting = 0
    channel.fresh = ''
    // The end is told even where nothing is left, so that a hook that gathers a text knows when it is whole.
    if (fresh === '' && !isLast) return ''
    if (channel.isPassed) return this.#let(channel, text, '', text)
    if (!isLast && this.#isHeld(channel.part)) return this.#let(channel, '', text, '')
    const { id, kind, index } = channel.part
    const checked = this.#call.check(this.#hook, { id, kind, index, before, held, fresh, isLast })
    const outcome = isPending(checked) ? ((yield checked) as HookOutcome<TextVerdict>) : checked
    if (outcome.kind === 'fault') {
      this.#fail(outcome.fault, outcome.error)
      return this.#letRest(channel, text, isLast)
    }
    const verdict: unknown = outcome.result
    if (verdict === undefined) return this.#letRest(channel, text, isLast)
    if (typeof verdict === 'object' && verdict !== null) {
      if ('deny' in verdict && verdict.deny !== undefined)
        throw new StreamDenial(this.#hook, this.#call.denied(this.#hook, verdict.deny), false)
      const { replace, hold = '' } = verdict as { replace?: unknown; hold?: unknown }
      if (typeof replace === 'string' && typeof hold === 'string' && text.endsWith(hold) && !(isLast && hold !== ''))
        return this.#let(channel, replace, hold, text.slice(0, text.length - hold.length))
    }
    this.#fail('unusable-result', new TypeError('text.check must return undefined, { replace, hold } or { deny }'))
    return this.#letRest(channel, text, isLast)
  }

  #isHeld({ kind }: TextPart): boolean {
    return this.#keep === Number.POSITIVE_INFINITY || this.#hook.hook.text?.holdAll?.includes(kind) === true
  }

  #letRest(channel: Channel, text: string, isLast: boolean): string {
    let cut = isLast ? text.length : Math.max(0, text.length - this.#keep)
    // Half of a character cannot be written.
    if (cut > 0 && cut < text.length && isHighSurrogate(text.charCodeAt(cut - 1))) cut -= 1
    return this.#let(channel, text.slice(0, cut), text.slice(cut), text.slice(0, cut))
  }

  #let(channel: Channel, sent: string, held: string, seen: string): string {
    this.#heldCharacters += held.length - channel.held.length
    channel.held = held
    channel.before = (channel.before + seen).slice(-MAX_BEFORE)
    if (this.#reader.repeats === true) channel.sent += sent
    if (this.#heldCharacters <= MAX_HELD_CHARACTERS) return sent
    this.#fail('too-large', new RangeError(`more than ${MAX_HELD_CHARACTERS} characters would be held back`))
    channel.isPassed = true
    return sent + this.#let(channel, held, '', held)
  }

  /** @throws StreamDenial unless what the hook was to check passes. */
  #fail(fault: HookFault, error: unknown): void {
    const denial = this.#call.failed(this.#hook, fault, error)
    if (denial !== undefined) throw new StreamDenial(this.#hook, denial, true)
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
