import type { Buffer } from 'node:buffer'
import { audioHeader } from '../../../wire/audio/audio-header.ts'
import { ChunkedBytes } from '../../../wire/audio/byte-source.ts'
import type { ScriptedTurn } from './scripted-turn.ts'

/** Transcript of a recording by the stand-ins. */
export interface HeardRecording {
  readonly text: string
  readonly seconds: number
  /** Segments of the text with their times, up to five seconds each. */
  readonly segments: readonly { readonly start: number; readonly end: number; readonly text: string }[]
  /** Tokens of the text, one per word. */
  readonly tokens: number
}

const SEGMENT_SECONDS = 5

/** Transcribes a recording: its length, or the text of a script. Returns `undefined` for an invalid recording. */
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
