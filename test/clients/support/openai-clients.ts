import OpenAI7, { type ClientOptions } from 'openai'
import OpenAI6 from 'openai6'
import { TEST_KEY } from '../../support/start-gateway.ts'

/** OpenAI's client class; the tests call what both versions have. */
export type OpenAIClass = typeof OpenAI7

/** The client of one version. */
export type OpenAIClient = InstanceType<OpenAIClass>

/** Both versions. Their private members keep the types apart, though every call made here is the same. */
export const OPENAI_VERSIONS: readonly (readonly [name: string, OpenAI: OpenAIClass])[] = [
  ['openai 6', OpenAI6 as unknown as OpenAIClass],
  ['openai 7', OpenAI7],
]

/** A client as a host's customer would make it, without retries unless asked for. */
export function openaiClient(OpenAI: OpenAIClass, origin: string, options: ClientOptions = {}): OpenAIClient {
  return new OpenAI({ apiKey: TEST_KEY, baseURL: `${origin}/v1`, maxRetries: 0, ...options })
}

/** The calls that a client has made, by the time each was sent. */
export interface CountedFetch {
  readonly fetch: typeof fetch
  /** Milliseconds of `performance.now()`. */
  readonly sentAtMs: readonly number[]
}

/** Creates a `fetch` for a client that records how often and when it was used. */
export function countedFetch(): CountedFetch {
  const sentAtMs: number[] = []
  return {
    sentAtMs,
    fetch: (input, init) => {
      sentAtMs.push(performance.now())
      return fetch(input, init)
    },
  }
}
