import type { Buffer } from 'node:buffer'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type { AnswerObject, TextPart, TextStep, TextStreamReader } from '../endpoints/texts.ts'
import { asBuffer } from '../wire/chunks.ts'
import { KnownEvents } from '../wire/event-template.ts'
import type { CompiledHook } from './hook-table.ts'
import {
  MAX_HELD_CHARACTERS,
  rewrite,
  StreamDenial,
  type StreamWork,
  type TextEvent,
  type TextStage,
} from './text-events.ts'
import type { WindowCall } from './window-stage.ts'

/** Functions of a call that a stage needs. */
export interface AnswerCall extends WindowCall {
  /** Returns replacement texts by their ids, or a denial; `undefined` if the answer stays unchanged. */
  answer(
    hook: CompiledHook,
    texts: readonly TextPart[],
  ): MaybePromise<ReadonlyMap<string, string> | StreamDenial | undefined>
}

/** Content of one text so far. */
interface Gathered {
  readonly part: TextPart
  text: string
}

/** Size in bytes that an event without bytes counts as, because it is an object in memory. */
const MIN_KEPT_BYTES = 64

/** Holds a whole stream back, for a hook that reads whole answers. */
export class AnswerStage implements TextStage {
  readonly #hook: CompiledHook
  readonly #call: AnswerCall
  readonly #reader: TextStreamReader
  #kept: TextEvent[] = []
  #keptBytes = 0
  readonly #texts = new Map<string, Gathered>()
  readonly #sent = new Map<string, string>()
  #isPassed = false
  #isOver = false

  constructor(hook: CompiledHook, call: AnswerCall, reader: TextStreamReader) {
    this.#hook = hook
    this.#call = call
    this.#reader = reader
  }

  sentOf(id: string): string | undefined {
    return this.#sent.get(id)
  }

  *push(events: readonly TextEvent[]): StreamWork<TextEvent[]> {
    if (this.#isPassed) return [...events]
    if (this.#isOver) {
      // End of a stream that was already decided. An unchecked text must not pass.
      for (const event of events) this.#rewrite(event, () => '')
      return [...events]
    }
    for (const event of events) this.#keep(event)
    if (this.#keptBytes <= MAX_HELD_CHARACTERS) return []
    const error = new RangeError(`more than ${MAX_HELD_CHARACTERS} characters would be held back`)
    const denial = this.#call.failed(this.#hook, 'too-large', error)
    if (denial !== undefined) throw new StreamDenial(this.#hook, denial, true)
    this.#isPassed = true
    return this.#let(undefined)
  }

  *end(): StreamWork<TextEvent[]> {
    if (this.#isPassed) return []
    const parts = [...this.#texts.values()].map(({ part, text }) => ({ ...part, text }))
    const answered = this.#call.answer(this.#hook, parts)
    const texts = isPending(answered) ? ((yield answered) as Awaited<typeof answered>) : answered
    if (texts instanceof StreamDenial) throw texts
    this.#isOver = true
    return this.#let(texts)
  }

  /** Collects the parts of a text in its first event. */
  #keep(event: TextEvent): void {
    let isNeeded = !event.step.isBare
    const emptied = new Map<TextPart, string>()
    for (const part of event.added) {
      const known = this.#texts.get(part.id)
      this.#keptBytes += part.text.length
      if (known === undefined) {
        this.#texts.set(part.id, { part, text: part.text })
        isNeeded = true
      } else {
        known.text += part.text
        if (!event.step.isBare) emptied.set(part, '')
      }
    }
    rewrite(event, emptied, this.#reader)
    for (const part of event.repeated)
      if (!this.#texts.has(part.id)) this.#texts.set(part.id, { part, text: part.text })
    if (!isNeeded) return
    if (!event.step.isBare) this.#keptBytes += Math.max(MIN_KEPT_BYTES, event.bytes?.byteLength ?? 0)
    this.#kept.push(event)
  }

  #let(texts: ReadonlyMap<string, string> | undefined): TextEvent[] {
    for (const [id, { text }] of this.#texts) this.#sent.set(id, texts?.get(id) ?? text)
    for (const event of this.#kept) this.#rewrite(event, ({ text }) => text)
    const kept = this.#kept
    this.#kept = []
    this.#texts.clear()
    return kept.filter(({ step, added }) => !step.isBare || added.length > 0)
  }

  /** Writes the text to send into an event. @param unknown Returns the text to send for a part without an earlier one. */
  #rewrite(event: TextEvent, unknown: (part: TextPart) => string): void {
    const parts = [...event.added, ...event.repeated]
    rewrite(event, new Map(parts.map((part) => [part, this.#sent.get(part.id) ?? unknown(part)])), this.#reader)
  }
}

const DATA = 'data:'

/** Facts about the events of a kind that only add to one text. */
interface PlainKind {
  readonly name: string | undefined
  readonly part: TextPart
}

/**
 * Reads events of a stream that differ from an earlier one only in their added text, without parsing them. Only for readers that
 * need not process such events; see `TextStreamReader.plain`.
 */
export class PlainEvents {
  readonly #padding: readonly string[]
  readonly #known = new KnownEvents<PlainKind>()

  /** Creates a reader, or returns `undefined` if every event has to be parsed. */
  static of({ plain }: TextStreamReader): PlainEvents | undefined {
    return plain && new PlainEvents(plain.padding)
  }

  private constructor(padding: readonly string[]) {
    this.#padding = padding
  }

  /** Position after the event that was read last. */
  get end(): number {
    return this.#known.end
  }

  /** Returns the event that begins here, or `undefined` if it has to be parsed. */
  read(bytes: Buffer, start: number): TextEvent | undefined {
    const kind = this.#known.match(bytes, start)
    const { text, end } = this.#known
    this.#known.release()
    if (kind === undefined || text === undefined) return undefined
    const { id, kind: textKind, index, path } = kind.part
    // Most reads are one event.
    const own = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end)
    return new PlainEvent(own, kind.name, { id, kind: textKind, index, text, path })
  }

  /** Learns the kind of a parsed event, so that similar ones need no parsing. */
  learn({ bytes, name, value, step }: TextEvent): void {
    const [part] = step.added
    if (!step.isBare || part === undefined || bytes === undefined || value === undefined) return
    const paths = [part.path, ...this.#padding.map((member) => [member])]
    this.#known.learn(asBuffer(bytes), value, paths, { name, part })
  }
}

const NONE: readonly never[] = []

/** Event that only adds to one text. It is parsed only if it is changed. */
class PlainEvent implements TextEvent {
  readonly bytes: Buffer
  readonly name: string | undefined
  added: readonly TextPart[]
  repeated: readonly TextPart[] = NONE
  isChanged = false
  readonly isPlain = true
  readonly step: TextStep
  #value: AnswerObject | undefined

  constructor(bytes: Buffer, name: string | undefined, part: TextPart) {
    this.bytes = bytes
    this.name = name
    this.added = [part]
    this.step = { added: this.added, repeated: NONE, ended: NONE, isBare: true }
  }

  get value(): AnswerObject {
    this.#value ??= this.#parsed()
    return this.#value
  }

  #parsed(): AnswerObject {
    const text = this.bytes.toString('utf8')
    const start = text.startsWith(DATA) ? DATA.length : text.indexOf(`\n${DATA}`) + 1 + DATA.length
    return JSON.parse(text.slice(start)) as AnswerObject
  }
}
