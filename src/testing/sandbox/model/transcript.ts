import type { Buffer } from 'node:buffer'
import { audioHeader } from '../../../wire/audio/audio-header.ts'
import { ChunkedBytes } from '../../../wire/audio/byte-source.ts'
import type { ScriptedTurn } from './scripted-turn.ts'

/** What the stand-ins hear in a recording. */
export interface HeardRecording {
  readonly text: string
  readonly seconds: number
  /** Pieces of the text with their times, five seconds or less. */
  readonly segments: readonly { readonly start: number; readonly end: number; readonly text: string }[]
  /** Tokens of the text: one for each word. */
  readonly tokens: number
}

const SEGMENT_SECONDS = 5

/** Hears how long a recording is, and what a script says. Undefined for what is no recording. */
export function heardRecording(file: Buffer, script: ScriptedTurn | undefined): HeardRecording | undefined {
  const header = audioHeader(new ChunkedBytes([file]))
  if (header === undefined) return undefined
  const seconds = header.seconds ?? 1
  const text = script?.text ?? script?.chunks?.join('') ?? `This recording is ${seconds.toFixed(1)} seconds long.`
  const words = text.split(/(?<=\s)/)
  const count = Math.max(1, Math.ceil(seconds / SEGMENT_SECONDS))
  const perSegment = Math.ceil(words.length / count)
  const segments = Array.from({ length: count }, (_, index) => ({
    start: index * SEGMENT_SECONDS,
    end: Math.min(seconds, (index + 1) * SEGMENT_SECONDS),
    text: words.slice(index * perSegment, (index + 1) * perSegment).join(''),
  }))
  return { text, seconds, segments: segments.filter((segment) => segment.text !== ''), tokens: words.length }
}
