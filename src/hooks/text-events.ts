import { type AnswerObject, setText, type TextPart, type TextStep, type TextStreamReader } from '../endpoints/texts.ts'
import type { CheckedDenial } from './hook.ts'
import type { CompiledHook } from './hook-table.ts'

/** Event of a streamed answer on its way through the hooks. */
export interface TextEvent {
  /** Bytes of the event as it arrived; undefined if the gateway wrote it. */
  readonly bytes: Uint8Array | undefined
  readonly name: string | undefined
  /** Parsed data; undefined for events without data of the dialect, such as an end mark. */
  readonly value: AnswerObject | undefined
  readonly step: TextStep
  /** Texts of its step, as changed so far. */
  added: readonly TextPart[]
  repeated: readonly TextPart[]
  isChanged: boolean
  /** Whether the reader need not process this event when it is sent. */
  readonly isPlain: boolean
}

/** A step of work on a stream. It yields pending promises, so that synchronous work does not wait. */
export type StreamWork<Result> = Generator<PromiseLike<unknown>, Result, unknown>

/** One hook that the events of a stream pass through. */
export interface TextStage {
  /** Processes the events of one network read and returns those that may be sent. */
  push(events: readonly TextEvent[]): StreamWork<TextEvent[]>
  /** Ends the stream and returns the events that were held back. */
  end(): StreamWork<TextEvent[]>
  /** Processes events without calling the hook. Returns `undefined`, without any effect, if the hook must check them. */
  pushQuiet?(events: readonly TextEvent[]): TextEvent[] | undefined
  /** Returns the sent part of a text, or `undefined` if it is unknown. Only if the dialect repeats texts. */
  sentOf(id: string): string | undefined
}

/** Error that ends a stream, because a hook has denied it or failed on it. */
export class StreamDenial extends Error {
  override readonly name = 'StreamDenial'
  readonly hook: CompiledHook
  readonly denial: CheckedDenial
  /** Whether the hook failed, so that nothing is wrong with the answer. */
  readonly isFault: boolean

  constructor(hook: CompiledHook, denial: CheckedDenial, isFault: boolean) {
    super('a hook has ended the stream')
    this.hook = hook
    this.denial = denial
    this.isFault = isFault
  }
}

/** Maximum number of characters of a stream that one hook holds back. */
export const MAX_HELD_CHARACTERS = 1024 * 1024

/** Creates the event of bytes that arrived. */
export function textEvent(
  bytes: Uint8Array,
  name: string | undefined,
  value: AnswerObject | undefined,
  step: TextStep,
): TextEvent {
  return { bytes, name, value, step, added: step.added, repeated: step.repeated, isChanged: false, isPlain: false }
}

/** Writes replacement texts into an event, for the parts that it adds or repeats. Handles all of them together, in linear time. */
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

/** Creates an event that only adds to a text that an earlier event has added to. */
export function moreOf(event: TextEvent, part: TextPart, text: string, reader: TextStreamReader): TextEvent {
  const value = reader.more(event.value!, part, text)
  reader.replaced?.(value)
  const step = reader.read(value)
  const { type } = value
  const name = event.name === undefined || typeof type !== 'string' ? event.name : type
  return { bytes: undefined, name, value, step, added: step.added, repeated: [], isChanged: true, isPlain: false }
}

/** Returns a function that returns whether a text ends with, or before, this event. Linear in the number of ended texts. */
export function endingsOf({ step: { ended } }: TextEvent): (id: string) => boolean {
  if (ended.length <= FEW_ENDINGS) return (id) => ended.some((beginning) => id.startsWith(beginning))
  const beginnings = new Set(ended)
  const lengths = [...new Set(ended.map(({ length }) => length))]
  return (id) => lengths.some((length) => beginnings.has(id.slice(0, length)))
}

const FEW_ENDINGS = 8
