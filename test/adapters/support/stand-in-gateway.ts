import { EventEmitter, once } from 'node:events'

import type { BodyFailure, ByteSink, ExchangeHandler, GatewayRequest } from '../../../src/core/exchange.ts'

/** Request as the stand-in saw it. It answers with this on every unknown path. */
export interface EchoAnswer {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly contentType: string | null
  readonly contentEncoding: string | null
  readonly contentLength: string | null
  readonly failure: BodyFailure | null
  readonly body: string
}

const STATUS_OF: Record<BodyFailure, number> = { too_large: 413, aborted: 499, consumed: 500, unreadable: 400 }
const STREAM_HEADERS = ['content-type', 'text/event-stream', 'cache-control', 'no-cache, no-transform']
export const BLOCK = new Uint8Array(64 * 1024).fill(120)

/**
 * An ExchangeHandler that behaves as its path says: `/v1/silent` never answers, `/v1/hang` sends one event and falls
 * silent, `/v1/stream` sends three events in separate turns, `/v1/flood` writes as long as it may, `/v1/cut` destroys
 * in mid-stream, `/v1/empty` is 204, `/v1/refuse` answers 401 without reading; everything else is echoed.
 */
export class StandInGateway extends EventEmitter implements ExchangeHandler {
  /** Paths for which the caller was seen leaving, in order. */
  readonly left: string[] = []
  /** Outcomes of body reads, in order. */
  readonly failures: (BodyFailure | undefined)[] = []
  floodedBytes = 0
  drains = 0
  limitBytes = 1024 * 1024
  handled = 0
  isClosing = false

  handle(request: GatewayRequest, sink: ByteSink): void {
    this.handled++
    if (this.isClosing) sink.endConnection?.()
    sink.onClose(() => {
      this.left.push(request.path)
      this.emit('left', sink.closed)
    })
    this.#answer(request, sink)
    this.emit('handled', request, sink)
  }

  /** Resolves with the next value of an event. */
  async next(event: 'left' | 'handled' | 'read' | 'full'): Promise<unknown> {
    const [value] = await once(this, event)
    return value
  }

  #answer(request: GatewayRequest, sink: ByteSink): void {
    if (request.path === '/v1/silent') return
    if (request.path === '/v1/hang') {
      sink.head(200, STREAM_HEADERS)
      sink.write('data: one\n\n')
    } else if (request.path === '/v1/stream') this.#stream(sink)
    else if (request.path === '/v1/flood') this.#flood(sink)
    else if (request.path === '/v1/cut') {
      sink.head(200, STREAM_HEADERS)
      sink.write('data: one\n\n')
      setImmediate(() => sink.destroy())
    } else if (request.path === '/v1/empty') {
      sink.head(204, ['x-request-id', 'req_1'])
      sink.end()
    } else if (request.path === '/v1/refuse') respond(sink, 401, '{}')
    else this.#echo(request, sink)
  }

  #stream(sink: ByteSink): void {
    sink.head(200, STREAM_HEADERS)
    const events = ['data: one\n\n', 'data: zwei – ünï\n\n']
    const next = (): void => {
      const event = events.shift()
      if (event === undefined) sink.end(Buffer.from('data: [DONE]\n\n'))
      else {
        sink.write(event)
        setImmediate(next)
      }
    }
    next()
  }

  #flood(sink: ByteSink): void {
    sink.head(200, ['content-type', 'application/octet-stream'])
    const totalBytes = 64 * 1024 * 1024
    const go = (): void => {
      while (!sink.closed && this.floodedBytes < totalBytes) {
        this.floodedBytes += BLOCK.byteLength
        if (!sink.write(BLOCK)) {
          this.emit('full')
          return
        }
      }
      sink.end()
    }
    sink.onDrain(() => {
      this.drains++
      go()
    })
    go()
  }

  #echo(request: GatewayRequest, sink: ByteSink): void {
    request.readBody(this.limitBytes, (failure, chunks) => {
      this.failures.push(failure)
      this.emit('read', failure)
      const answer: EchoAnswer = {
        method: request.method,
        path: request.path,
        query: request.query,
        contentType: request.header('content-type') ?? null,
        contentEncoding: request.header('content-encoding') ?? null,
        contentLength: request.header('content-length') ?? null,
        failure: failure ?? null,
        body: Buffer.concat(chunks).toString(),
      }
      respond(sink, failure === undefined ? 200 : STATUS_OF[failure], JSON.stringify(answer))
    })
  }
}

function respond(sink: ByteSink, status: number, body: string): void {
  const length = String(Buffer.byteLength(body))
  sink.head(status, ['content-type', 'application/json', 'content-length', length, 'vary', 'x-api-key'])
  sink.end(body)
}
