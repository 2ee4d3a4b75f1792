import { Buffer } from 'node:buffer'
import { sseData } from '../../wire/sse.ts'
import type { SpeechTokens } from './speech-decoder.ts'

/** Encoding of the file's bytes for the caller. */
export interface SpeechEnvelope {
  /** Wraps some bytes of the file. */
  wrap(file: Uint8Array): Uint8Array | string
  /** Returns the bytes after the complete file, if any. */
  done(usage: SpeechUsage): string | undefined
}

/** Content of the last event. */
export interface SpeechUsage extends SpeechTokens {
  /** Charged characters of the text. */
  readonly characters: number
}

/** Sends the file itself. */
export const PLAIN_ENVELOPE: SpeechEnvelope = {
  wrap: (file) => file,
  done: () => undefined,
}

/** Sends OpenAI's events, `speech.audio.delta` and `speech.audio.done` (OpenAI API, "Speech events"). */
export const EVENT_ENVELOPE: SpeechEnvelope = {
  wrap: (file) =>
    sseData(
      `{"type":"speech.audio.delta","audio":"${Buffer.from(file.buffer, file.byteOffset, file.byteLength).toString('base64')}"}`,
    ),
  done: ({ inputTokens, outputTokens, characters }) =>
    sseData(
      JSON.stringify({
        type: 'speech.audio.done',
        usage: {
          input_tokens: inputTokens,
          output_tokens: outputTokens,
          total_tokens: inputTokens + outputTokens,
          characters,
        },
      }),
    ),
}
