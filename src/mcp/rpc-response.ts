import { Buffer } from 'node:buffer'
import type { GatewayError } from '../core/errors.ts'
import type { ByteSink } from '../core/exchange.ts'
import { mediaType } from '../wire/headers.ts'

/** Headers of one connection (RFC 9110, section 7.6.1); the adapter sets its own. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/** JSON-RPC 2.0, "Error object": the body is not JSON. */
const PARSE_ERROR = -32_700

/** JSON-RPC 2.0, "Error object": the JSON is not a valid request. */
const INVALID_REQUEST = -32_600

/** Answers a body that is not JSON, with a JSON-RPC error. */
export function respondParseError(sink: ByteSink, error: GatewayError): void {
  const code = error.code === 'invalid_json' ? PARSE_ERROR : INVALID_REQUEST
  respondJson(sink, error.status, { jsonrpc: '2.0', id: null, error: { code, message: error.message } })
}

/** Answers with one message. */
export function respondJson(sink: ByteSink, status: number, message: object): void {
  const body = Buffer.from(JSON.stringify(message))
  sink.head(status, ['content-type', 'application/json', 'content-length', String(body.byteLength)])
  sink.end(body)
}

interface Sending {
  /** Additional response headers, as a flat list. */
  readonly headers: readonly string[]
  /** Aborts when the caller disconnects or cancels. */
  readonly signal: AbortSignal
  /** Called if a stream fails after it has begun. The caller's connection is then closed. */
  readonly onBreak: (error: unknown) => void
}

/** Sends a response: event streams as they arrive, with backpressure; everything else whole. */
export async function sendResponse(response: Response, sink: ByteSink, sending: Sending): Promise<void> {
  const list = [...sending.headers]
  for (const [name, value] of response.headers) if (!CONNECTION_HEADERS.has(name)) list.push(name, value)
  if (mediaType(response.headers.get('content-type') ?? undefined) !== 'text/event-stream') {
    const bytes = new Uint8Array(await response.arrayBuffer())
    if (bytes.byteLength > 0) list.push('content-length', String(bytes.byteLength))
    sink.head(response.status, list)
    sink.end(bytes)
    return
  }
  sink.head(response.status, list)
  try {
    if (response.body !== null) await pump(response.body.getReader(), sink, sending.signal)
    sink.end()
  } catch (error) {
    sink.destroy()
    sending.onBreak(error)
  }
}

async function pump(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  sink: ByteSink,
  signal: AbortSignal,
): Promise<void> {
  let resume: (() => void) | undefined
  const go = (): void => resume?.()
  sink.onDrain(go)
  signal.addEventListener('abort', go)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (sink.closed) return await reader.cancel()
      if (sink.write(value) || signal.aborted) continue
      await new Promise<void>((resolve) => {
        resume = resolve
      })
    }
  } finally {
    signal.removeEventListener('abort', go)
  }
}
