import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import { type AnswerObject, setText, type TextPart, type TextStep, type TextStreamReader } from '../endpoints/texts.ts'
import { EventTemplate } from '../wire/event-template.ts'
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
const LEAST_KEPT_BYTES = 64

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
    if (!event.step.isBare) this.#keptBytes += Math.max(LEAST_KEPT_BYTES, event.bytes?.byteLength ?? 0)
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

/** Maximum number of kinds of events known at a time: for several choices, and for text and reasoning. */
const MAX_TEMPLATES = 4

/** Number of events without a match after which the rest of a stream is no longer compared. */
const MAX_MISSES = 16

const DATA = 'data:'

/** Kind of event that only adds to one text. */
interface PlainKind {
  readonly template: EventTemplate
  readonly name: string | undefined
  readonly part: TextPart
}

/**
 * Reads events of a stream that differ from an earlier one only in their added text, without parsing them. Only for readers that
 * need not process such events; see `TextStreamReader.plain`.
 */
export class PlainEvents {
  /** Position after the event that was read last. */
  end = 0
  readonly #padding: readonly string[]
  readonly #kinds: PlainKind[] = []
  #misses = 0

  /** Creates a reader, or returns `undefined` if every event has to be parsed. */
  static of({ plain }: TextStreamReader): PlainEvents | undefined {
    return plain && new PlainEvents(plain.padding)
  }

  private constructor(padding: readonly string[]) {
    this.#padding = padding
  }

  /** Returns the event that begins here, or `undefined` if it has to be parsed. */
  read(bytes: Buffer, start: number): TextEvent | undefined {
    const kinds = this.#kinds
    for (let index = 0; index < kinds.length; index++) {
      const kind = kinds[index]!
      const { template, name, part } = kind
      if (!template.match(bytes, start)) continue
      const text = template.text(bytes)
      if (text === undefined) return undefined
      this.#misses = 0
      this.end = template.end
      // Most reads are one event.
      const own = start === 0 && template.end === bytes.length ? bytes : bytes.subarray(start, template.end)
      return new PlainEvent(own, name, { id: part.id, kind: part.kind, index: part.index, text, path: part.path })
    }
    return undefined
  }

  /** Learns the kind of a parsed event, so that similar ones need no parsing. */
  learn({ bytes, name, value, step }: TextEvent): void {
    const [part] = step.added
    if (!step.isBare || part === undefined || bytes === undefined || value === undefined) return
    if (this.#misses >= MAX_MISSES) return
    this.#misses += 1
    const template = templateOf(Buffer.from(bytes), value, part, this.#padding)
    if (template === undefined) return
    this.#kinds.unshift({ template, name, part })
    if (this.#kinds.length > MAX_TEMPLATES) this.#kinds.pop()
  }
}

/** Returns the template of an event, or undefined if its strings are encoded or placed in an unexpected way. */
function templateOf(
  bytes: Buffer,
  value: AnswerObject,
  part: TextPart,
  padding: readonly string[],
): EventTemplate | undefined {
  const padded = padding.find((name) => typeof value[name] === 'string')
  const literals = [JSON.stringify(part.text)]
  if (padded !== undefined) literals.push(JSON.stringify(value[padded]))
  const template = EventTemplate.of(bytes, literals)
  if (template === undefined) return undefined
  // With other strings, the result must be the same event with these strings. Otherwise the places are not those of text and padding.
  const expected = structuredClone(value)
  setText(expected, part.path, 'other text')
  if (padded !== undefined) expected[padded] = 'other padding'
  const lines = template.filled(['other text', 'other padding']).trimEnd().split('\n')
  const data = lines.filter((line) => line.startsWith(DATA))
  const [only] = data
  if (data.length !== 1 || only === undefined) return undefined
  const filled = parseVendorJson(only.slice(DATA.length))
  return isJsonObject(filled) && JSON.stringify(filled) === JSON.stringify(expected) ? template : undefined
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
