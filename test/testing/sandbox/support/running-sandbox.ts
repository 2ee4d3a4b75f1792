import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../../../src/testing/index.ts'
import { type ServerSentEvent, sseReader } from '../../../../src/wire/sse.ts'

/** An answer that was read to its end. */
export interface ReadAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json
  readonly events: ServerSentEvent[]
}

/** JSON of an answer, whose members tests compare. */
export type Json = ReturnType<typeof JSON.parse>

/** A sandbox on a port for the tests of one file, and a client for it. */
export interface RunningSandbox {
  readonly sandbox: Sandbox
  readonly origin: string
  /** Posts JSON with every vendor's credential and version header, unless headers are given. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<ReadAnswer>
  /** Posts JSON like `post`, and returns before the body is read. */
  send(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
}

const CREDENTIALS = {
  authorization: 'Bearer sk-test-1234',
  'x-goog-api-key': 'test-1234',
  'anthropic-version': '2023-06-01',
}

/** Starts a sandbox before the tests of a file and closes it after them. */
export function runningSandbox(): RunningSandbox {
  const sandbox = sandboxVendors()
  let origin = ''
  beforeAll(async () => {
    origin = (await sandbox.listen()).origin
  })
  beforeEach(() => sandbox.reset())
  afterAll(() => sandbox.close())
  const send: RunningSandbox['send'] = (path, body, headers = CREDENTIALS, signal) =>
    fetch(origin + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      redirect: 'manual',
      ...(signal === undefined ? {} : { signal }),
    })
  return {
    sandbox,
    get origin() {
      return origin
    },
    send,
    async post(path, body, headers) {
      const response = await send(path, body, headers)
      const text = await response.text()
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: text.startsWith('{') || text.startsWith('[') ? (JSON.parse(text) as Json) : undefined,
        events: eventsOf(text),
      }
    },
  }
}

/** Returns the events of a stream. */
export function eventsOf(text: string): ServerSentEvent[] {
  const events: ServerSentEvent[] = []
  const reader = sseReader((event) => events.push(event))
  reader.push(Buffer.from(text))
  reader.end()
  return events
}

/** Returns the JSON of each event except the end mark. */
export function eventData(events: readonly ServerSentEvent[]): Json[] {
  return events.filter((event) => event.data !== '[DONE]').map((event) => JSON.parse(event.data) as Json)
}

/** A weather function in OpenAI's shape. */
export const WEATHER_TOOL = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Weather of a place',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
