import { type AnswerObject, setText, type TextPart, type TextStep, type TextStreamReader } from '../endpoints/texts.ts'
import type { CheckedDenial } from './denial.ts'
import type { CompiledHook } from './hook-table.ts'

/** One event of a streamed answer on its way through the hooks. */
export interface TextEvent {
  /** The event as it came; undefined where it was written here. */
  readonly bytes: Uint8Array | undefined
  readonly name: string | undefined
  /** Undefined for what has no data of the dialect, such as an end mark. */
  readonly value: AnswerObject | undefined
  readonly step: TextStep
  /** As in its step, with the texts that it has by now. */
  added: readonly TextPart[]
  repeated: readonly TextPart[]
  isChanged: boolean
  /** Need the reader not be told that it is sent? */
  readonly isPlain: boolean
}

/** A step of work on a stream. It yields what it must wait for, so that nothing waits where nothing is pending. */
export type StreamWork<Result> = Generator<PromiseLike<unknown>, Result, unknown>

/** The events of a stream on their way through one hook. */
export interface TextStage {
  /** Takes the events of one network read; gives those that may go on. */
  push(events: readonly TextEvent[]): StreamWork<TextEvent[]>
  /** The stream has ended: gives what was held back. */
  end(): StreamWork<TextEvent[]>
  /** The same as `push` where no hook needs to be asked about these events. Undefined: one does, and nothing was taken. */
  pushQuiet?(events: readonly TextEvent[]): TextEvent[] | undefined
  /** What went on of a text; undefined: nothing is known of it. Only where the dialect repeats texts. */
  sentOf(id: string): string | undefined
}

/** A hook has denied the stream, or has failed on it. Ends the stream. */
export class StreamDenial extends Error {
  override readonly name = 'StreamDenial'
  readonly hook: CompiledHook
  readonly denial: CheckedDenial
  /** True where the hook has failed and nothing was wrong with the answer. */
  readonly isFault: boolean

  constructor(hook: CompiledHook, denial: CheckedDenial, isFault: boolean) {
    super('a hook has ended the stream')
    this.hook = hook
    this.denial = denial
    this.isFault = isFault
  }
}

/** Most characters of a stream that one hook holds back. */
export const MAX_HELD_CHARACTERS = 1024 * 1024

/** An event as it came. */
export function textEvent(
  bytes: Uint8Array,
  name: string | undefined,
  value: AnswerObject | undefined,
  step: TextStep,
): TextEvent {
  return { bytes, name, value, step, added: step.added, repeated: step.repeated, isChanged: false, isPlain: false }
}

/** Writes other texts into an event, by the parts that it adds or repeats. All of them together, so that the work is linear. */
export function rewrite(event: TextEvent, texts: ReadonlyMap<TextPart, string>, reader: TextStreamReader): void {
  const changed = [...texts].filter(([part, text]) => text !== part.text)
  if (changed.length === 0 || event.value === undefined) return
  for (const [part, text] of changed) setText(event.value, part.path, text)
  reader.replaced?.(event.value)
  const other = (known: TextPart): TextPart => ({ ...known, text: texts.get(known) ?? known.text })
  event.added = event.added.map(other).filter((known) => known.text !== '')
  event.repeated = event.repeated.map(other)
  event.isChanged = true
}

/** An event that adds nothing but a text, where an earlier event has added to the same text. */
export function moreOf(event: TextEvent, part: TextPart, text: string, reader: TextStreamReader): TextEvent {
  const value = reader.more(event.value!, part, text)
  reader.replaced?.(value)
  const step = reader.read(value)
  const { type } = value
  const name = event.name === undefined || typeof type !== 'string' ? event.name : type
  return { bytes: undefined, name, value, step, added: step.added, repeated: [], isChanged: true, isPlain: false }
}

/** Returns whether the text with an id ends with, or before, this event. Linear for an event that ends many texts. */
export function endingsOf({ step: { ended } }: TextEvent): (id: string) => boolean {
  if (ended.length <= FEW_ENDINGS) return (id) => ended.some((beginning) => id.startsWith(beginning))
  const beginnings = new Set(ended)
  const lengths = [...new Set(ended.map(({ length }) => length))]
  return (id) => lengths.some((length) => beginnings.has(id.slice(0, length)))
}

const FEW_ENDINGS = 8
