import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../core/json.ts'
import { type AnswerObject, setText, type TextPart, type TextStep, type TextStreamReader } from '../endpoints/texts.ts'
import { EventTemplate } from '../wire/event-template.ts'
import type { TextEvent } from './text-events.ts'

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
