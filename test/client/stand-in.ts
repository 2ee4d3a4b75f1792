import { type HttpHandler, HttpResponse, http } from 'msw'
import { type SetupServer, setupServer } from 'msw/node'
import type { ClientOptions, GatewayClient } from '../../src/client/index.ts'
import { createClient } from '../../src/client/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'

/** Where the stand-in answers; nobody listens there. */
export const BASE_URL = 'http://gateway.example.net/v1'

/** A gateway of which only the answers exist, and a client of it whose time is moved by hand. */
export interface StandIn {
  readonly client: GatewayClient
  readonly clock: FakeClock
  readonly server: SetupServer
  /** The requests that arrived, oldest first. */
  readonly requests: readonly Request[]
  /** Makes another client of the same gateway. */
  clientWith(options: Partial<ClientOptions>): GatewayClient
}

/** Starts one. Its answers are given by `server.use`. */
export function startStandIn(): StandIn {
  const server = setupServer()
  const requests: Request[] = []
  server.events.on('request:start', ({ request }) => void requests.push(request.clone()))
  server.listen({ onUnhandledRequest: 'error' })
  const clock = fakeClock()
  const clientWith = (options: Partial<ClientOptions>): GatewayClient =>
    createClient({ baseURL: BASE_URL, apiKey: 'sk-test', clock, ...options })
  return { client: clientWith({}), clock, server, requests, clientWith }
}

/** Answers POSTs of a path with these, one after the other; the last one is repeated. */
export function answering(path: string, ...answers: readonly (() => Response)[]): HttpHandler {
  return inTurn((resolver) => http.post(`${BASE_URL}${path}`, resolver), answers)
}

/** Answers GETs of a path with these, one after the other; the last one is repeated. */
export function showing(path: string, ...answers: readonly (() => Response)[]): HttpHandler {
  return inTurn((resolver) => http.get(`${BASE_URL}${path}`, resolver), answers)
}

function inTurn(handler: (resolver: () => Response) => HttpHandler, answers: readonly (() => Response)[]): HttpHandler {
  let turn = 0
  return handler(() => answers[Math.min(turn++, answers.length - 1)]!())
}

/** A JSON answer. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): () => Response {
  return () =>
    new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json', ...headers } })
}

/** A connection that breaks before an answer. */
export const unreachable = (): Response => HttpResponse.error()

/** A stream of server-sent events in these pieces; `breaksOff` ends it with an error. */
export function events(pieces: readonly string[], { breaksOff = false } = {}): () => Response {
  return () => {
    const encoder = new TextEncoder()
    let next = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces[next++]
        if (piece !== undefined) controller.enqueue(encoder.encode(piece))
        else if (breaksOff) controller.error(new Error('broken'))
        else controller.close()
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-request-id': 'req_stream' } })
  }
}

/** All items of a stream. */
export async function collected<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

/** Lets everything that waits for nothing but promises and the loop of events run, then moves the time. */
export async function advance(clock: FakeClock, durationMs: number): Promise<void> {
  await untilWaiting(clock)
  clock.advance(durationMs)
}

/** Turns of the event loop until somebody waits for the clock again. */
async function untilWaiting(clock: FakeClock): Promise<void> {
  for (let turn = 0; turn < 1_000 && clock.pending === 0; turn++) await new Promise((resolve) => setImmediate(resolve))
}
