import type { SpeechRequest } from './speech-request.ts'

/** What the gateway reads. `speed` is not among it: it is taken for compatibility and has no effect. */
const USED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'voice',
  'response_format',
  'instructions',
  'stream_format',
])

// Names go into a header, so what could not stand there is left out, and so is more than anybody would read.
const PLAIN_NAME = /^[\w.-]{1,64}$/
const MAX_NAMES = 20

/** Names of the fields that a caller set and that have no effect. */
export function unusedSpeechFields(request: SpeechRequest): readonly string[] {
  return Object.keys(request)
    .filter((field) => !USED_FIELDS.has(field) && (request[field] ?? null) !== null && PLAIN_NAME.test(field))
    .slice(0, MAX_NAMES)
}
