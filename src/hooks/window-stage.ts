import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { TextPart, TextStreamReader } from '../endpoints/texts.ts'
import type { HookFault, HookOutcome } from './call-hook.ts'
import type { CheckedDenial, TextVerdict } from './hook.ts'
import type { CompiledHook } from './hook-table.ts'
import { QUIET_TEXTS, type QuietTextHook, type SkippableText } from './redact.ts'
import {
  endingsOf,
  MAX_HELD_CHARACTERS,
  moreOf,
  rewrite,
  StreamDenial,
  type StreamWork,
  type TextEvent,
  type TextStage,
} from './text-events.ts'

/**
 * Maximum number of open texts of a stream. Beyond it, a hook fails with `too-large`, because every event that ends a text is
 * compared with all open ones. An answer of 128 choices has a few hundred.
 */
const MAX_OPEN_TEXTS = 2_048

/** Maximum number of characters of one window. A single event of 64 MiB can add as many to a text. */
const MAX_WINDOW_CHARACTERS = 4 * MAX_HELD_CHARACTERS

/** Maximum number of characters before a window that its hook sees. */
const MAX_PRECEDING_CHARACTERS = 64

/** Content of a text window, in addition to the facts of the call. */
export interface WindowText extends Pick<TextPart, 'id' | 'kind' | 'index'> {
  readonly before: string
  readonly held: string
  readonly fresh: string
  readonly isLast: boolean
}

/** Functions of a call that a stage needs. */
export interface WindowCall {
  check(hook: CompiledHook, window: WindowText): MaybePromise<HookOutcome<TextVerdict>>
  denied(hook: CompiledHook, denial: unknown): CheckedDenial
  /** Returns the denial for a failed hook, or `undefined` if the text passes. */
  failed(hook: CompiledHook, fault: HookFault, error: unknown): CheckedDenial | undefined
}

/** Text of an event that is held back, or arrived with this read. */
interface Piece {
  readonly event: TextEvent
  readonly part: TextPart
  readonly text: string
  /** Whether it is all that the event adds, so that the event can be sent unchanged. */
  readonly isWhole: boolean
}

/** Maximum length of a text whose event is held back as a whole. */
const MAX_WHOLE = 32

/** Text of the answer: of one choice, block or item, and of one kind. */
interface Channel {
  readonly id: string
  /** Sent pieces, up to {@link MAX_PRECEDING_CHARACTERS}; each has at least one character. */
  before: string[]
  held: Piece[]
  /** Whether the held characters cannot contain a match of the hook. */
  isQuiet: boolean
  /** Pieces of the current read. */
  fresh: Piece[]
  sent: string
  /** Last event that added to the text. It is written again with other text. */
  last: TextEvent
  part: TextPart
  isPassed: boolean
}

/** Shows a hook each text of a stream in windows, and sends the parts that may be sent. */
export class WindowStage implements TextStage {
  readonly #hook: CompiledHook
  readonly #keep: number
  readonly #call: WindowCall
  readonly #reader: TextStreamReader
  readonly #open = new Map<string, Channel>()
  readonly #sent = new Map<string, string>()
  readonly #quiet: SkippableText | undefined
  #heldCharacters = 0
  #isOverfull = false

  constructor(hook: CompiledHook, call: WindowCall, reader: TextStreamReader) {
    this.#hook = hook
    this.#call = call
    this.#reader = reader
    const { holdBack = 'all', [QUIET_TEXTS]: quiet }: Partial<QuietTextHook> = hook.hook.text ?? {}
    this.#quiet = quiet
    this.#keep = holdBack === 'all' ? Number.POSITIVE_INFINITY : holdBack.chars
  }

  sentOf(id: string): string | undefined {
    return this.#open.get(id)?.sent ?? this.#sent.get(id)
  }

  *push(events: readonly TextEvent[]): StreamWork<TextEvent[]> {
    const out: TextEvent[] = []
    const dirty = new Set<Channel>()
    for (const event of events) {
      const only = onlyPart(event)
      if (only !== undefined) {
        dirty.add(this.#take(event, only))
        continue
      }
      const isEnded = endingsOf(event)
      yield* this.#closeBefore(event, isEnded, out)
      const texts = new Map<TextPart, string>()
      for (const part of event.added) {
        const channel = this.#take(event, part)
        const isLast = isEnded(part.id)
        texts.set(part, yield* this.#release(channel, isLast))
        if (isLast) this.#close(channel)
      }
      for (const part of event.repeated) texts.set(part, yield* this.#repeated(event, part))
      rewrite(event, texts, this.#reader)
      out.push(event)
    }
    for (const channel of dirty) if (channel.fresh.length > 0) yield* this.#goOn(channel, false, out)
    return out
  }

  /** Texts in which the hook would find nothing pass without a check, in their original events. */
  pushQuiet(events: readonly TextEvent[]): TextEvent[] | undefined {
    const quiet = this.#quiet
    if (quiet === undefined) return undefined
    let characters = this.#heldCharacters
    for (const event of events) {
      const part = onlyPart(event)
      if (part === undefined) return undefined
      characters += part.text.length
      if (characters > MAX_HELD_CHARACTERS || !quiet.isQuiet(part.text, part.kind)) return undefined
      const known = this.#open.get(part.id)
      if (known === undefined ? this.#open.size + events.length > MAX_OPEN_TEXTS : !known.isQuiet || known.isPassed)
        return undefined
    }
    const out: TextEvent[] = []
    let last: Channel | undefined
    for (const event of events) {
      const part = event.added[0]!
      const channel = this.#channelOf(event, part)
      if (last !== undefined && last !== channel) this.#letQuiet(last, quiet, out)
      channel.held.push({ event, part, text: part.text, isWhole: true })
      last = channel
    }
    if (last !== undefined) this.#letQuiet(last, quiet, out)
    this.#heldCharacters = characters
    for (const { added } of out) this.#heldCharacters -= added[0]!.text.length
    return out
  }

  /** Sends the events before the one in which a match may begin; a long one is split there. */
  #letQuiet(channel: Channel, quiet: SkippableText, out: TextEvent[]): void {
    const { held } = channel
    const texts = held.length === 1 ? [held[0]!.text] : held.map(({ text }) => text)
    let tail = quiet.tailOf(texts, channel.part.kind)
    let kept = held.length
    while (kept > 0 && tail > 0) tail -= held[--kept]!.text.length
    // The text before the tail is longer than a text that is kept whole.
    const first = held[kept]
    const cut = first !== undefined && first.text.length > MAX_WHOLE ? wholeCharacters(first.text, -tail) : 0
    if (first !== undefined && cut > 0) {
      const rest = { ...first, text: first.text.slice(cut), isWhole: false }
      held[kept] = { ...first, text: first.text.slice(0, cut), isWhole: false }
      held.splice(kept + 1, 0, rest)
      kept += 1
    }
    for (let index = 0; index < kept; index++) {
      const piece = held[index]!
      this.#went(channel, piece.text)
      if (this.#reader.repeats === true) channel.sent += piece.text
      out.push(eventOf(piece, this.#reader))
    }
    if (kept === held.length) held.length = 0
    else if (kept > 0) held.splice(0, kept)
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
    const channel = this.#channelOf(event, part)
    channel.fresh.push({ event, part, text: part.text, isWhole: onlyPart(event) !== undefined })
    return channel
  }

  #channelOf(event: TextEvent, part: TextPart): Channel {
    const known = this.#open.get(part.id)
    if (known !== undefined) {
      known.last = event
      known.part = part
      return known
    }
    const { id } = part
    const isPassed = this.#open.size >= MAX_OPEN_TEXTS
    const channel = { id, before: [], held: [], isQuiet: true, fresh: [], sent: '', last: event, part, isPassed }
    if (!isPassed) this.#open.set(id, channel)
    else if (!this.#isOverfull) {
      this.#isOverfull = true
      this.#fail('too-large', new RangeError(`more than ${MAX_OPEN_TEXTS} texts would be open at the same time`))
    }
    return channel
  }

  #close(channel: Channel): void {
    this.#open.delete(channel.id)
    if (this.#reader.repeats === true) this.#sent.set(channel.id, channel.sent)
  }

  /** Ends texts before the event that closes them, unless it adds to them once more. */
  *#closeBefore(event: TextEvent, isEnded: (id: string) => boolean, out: TextEvent[]): StreamWork<void> {
    if (event.step.ended.length === 0 || this.#open.size === 0) return
    const added = new Set(event.added.map(({ id }) => id))
    for (const channel of [...this.#open.values()]) {
      if (added.has(channel.id) || !isEnded(channel.id)) continue
      yield* this.#goOn(channel, true, out)
      this.#close(channel)
    }
  }

  /** Sends the part of a text that may be sent: in its original events if unchanged, otherwise in a new event. */
  *#goOn(channel: Channel, isLast: boolean, out: TextEvent[]): StreamWork<void> {
    const { last, part } = channel
    const pieces = [...channel.held, ...channel.fresh]
    const text = yield* this.#release(channel, isLast)
    let written = 0
    for (const piece of pieces) {
      if (!piece.isWhole || written === text.length || !text.startsWith(piece.text, written)) break
      out.push(piece.event)
      written += piece.text.length
    }
    if (written < text.length) out.push(moreOf(last, part, text.slice(written), this.#reader))
  }

  /** A text that was sent in parts is repeated as it was sent; a text that appears for the first time as a whole is checked now. */
  *#repeated(event: TextEvent, part: TextPart): StreamWork<string> {
    const known = this.sentOf(part.id)
    if (known !== undefined) return known
    const channel = this.#take(event, part)
    const sent = yield* this.#release(channel, true)
    this.#close(channel)
    return sent
  }

  *#release(channel: Channel, isLast: boolean): StreamWork<string> {
    const held = textOf(channel.held)
    const fresh = textOf(channel.fresh)
    const text = held + fresh
    channel.fresh = []
    // The end is reported even without new characters, so that a hook that collects a text knows when it is complete.
    if (fresh === '' && !isLast) return ''
    if (channel.isPassed) return this.#let(channel, text, '', text)
    if (text.length > MAX_WINDOW_CHARACTERS) return this.#letUnchecked(channel, text)
    if (!isLast && this.#isHeld(channel.part)) return this.#let(channel, '', text, '')
    const { id, kind, index } = channel.part
    const before = channel.before.join('').slice(-MAX_PRECEDING_CHARACTERS)
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
    const cut = isLast ? text.length : wholeCharacters(text, Math.max(0, text.length - this.#keep))
    return this.#let(channel, text.slice(0, cut), text.slice(cut), text.slice(0, cut))
  }

  #let(channel: Channel, sent: string, held: string, seen: string): string {
    this.#heldCharacters += held.length - lengthOf(channel.held)
    const { last: event, part } = channel
    channel.held = held === '' ? [] : [{ event, part, text: held, isWhole: false }]
    channel.isQuiet = this.#quiet?.isQuiet(held, part.kind) === true
    this.#went(channel, seen)
    if (this.#reader.repeats === true) channel.sent += sent
    return this.#heldCharacters <= MAX_HELD_CHARACTERS ? sent : sent + this.#letUnchecked(channel, held)
  }

  /** Lets the hook fail on a text that is too large; it checks no more of that text. */
  #letUnchecked(channel: Channel, text: string): string {
    this.#fail('too-large', new RangeError(`more than ${MAX_HELD_CHARACTERS} characters would be held back`))
    channel.isPassed = true
    return this.#let(channel, text, '', text)
  }

  #went(channel: Channel, seen: string): void {
    if (seen === '') return
    channel.before.push(seen)
    if (channel.before.length > 2 * MAX_PRECEDING_CHARACTERS) channel.before.splice(0, MAX_PRECEDING_CHARACTERS)
  }

  /** @throws StreamDenial unless unchecked texts pass. */
  #fail(fault: HookFault, error: unknown): void {
    const denial = this.#call.failed(this.#hook, fault, error)
    if (denial !== undefined) throw new StreamDenial(this.#hook, denial, true)
  }
}

/** Returns the only part of an event that may be dropped, or repeated with other texts; `undefined` for other events. */
function onlyPart({ step, added }: TextEvent): TextPart | undefined {
  return step.isBare && added.length === 1 && step.ended.length === 0 ? added[0] : undefined
}

function textOf(pieces: readonly Piece[]): string {
  return pieces.length === 1 ? pieces[0]!.text : pieces.map(({ text }) => text).join('')
}

function lengthOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0)
}

function eventOf({ event, part, text, isWhole }: Piece, reader: TextStreamReader): TextEvent {
  return isWhole ? event : moreOf(event, part, text, reader)
}

/** Returns a position in a text, or the one before it: half of a surrogate pair cannot be written. */
function wholeCharacters(text: string, cut: number): number {
  return cut > 0 && cut < text.length && isHighSurrogate(text.charCodeAt(cut - 1)) ? cut - 1 : cut
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
