import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import type { ByteSink, ExchangeHandler, GatewayRequest } from '../../src/core/exchange.ts'
import { callGateway } from '../../src/mcp/gateway-call.ts'

const CALL = { method: 'POST', path: '/v1/chat/completions', body: { text: 'Zoë' } } as const
const never = new AbortController().signal

/** A handler that keeps what it was called with. */
function keeping(): ExchangeHandler & { sink?: ByteSink; request?: GatewayRequest } {
  return {
    handle(request, sink) {
      this.request = request
      this.sink = sink
    },
  }
}

test('the request is JSON without credentials, and the answer is what was written', async () => {
  const handler = keeping()
  const answer = callGateway(handler, { ...CALL, idempotencyKey: 'once' }, { signal: never })
  const { request, sink } = handler
  let body = ''
  request?.readBody(100, (_failure, chunks) => {
    body = Buffer.concat(chunks).toString()
  })
  sink?.head(201, ['content-type', 'text/plain', 'x-request-id', 'req_1'])
  sink?.write('one ')
  sink?.write(Buffer.from('two '))
  sink?.end('three')

  expect(body).toBe('{"text":"Zoë"}')
  expect(request?.header('content-type')).toBe('application/json')
  expect(request?.header('idempotency-key')).toBe('once')
  expect(request?.header('authorization')).toBeUndefined()
  const { status, headers, body: bytes } = await answer
  expect(status).toBe(201)
  expect(headers.get('x-request-id')).toBe('req_1')
  expect(bytes.toString()).toBe('one two three')
})

test('reports a body above the limit of the gateway', () => {
  const handler = keeping()
  void callGateway(handler, CALL, { signal: never })
  let failure: string | undefined
  handler.request?.readBody(5, (reason) => {
    failure = reason
  })

  expect(failure).toBe('too_large')
})

describe('a call ends early', () => {
  test('when its caller disconnects: the gateway notices, and later output has no effect', async () => {
    const handler = keeping()
    const departure = new AbortController()
    const answer = callGateway(handler, CALL, { signal: departure.signal })
    let seen = 0
    handler.sink?.onClose(() => seen++)

    departure.abort()
    handler.sink?.head(200, [])
    handler.sink?.end('late')

    await expect(answer).rejects.toMatchObject({ code: 'client_closed_request' })
    expect(seen).toBe(1)
    expect(handler.sink?.closed).toBe(true)
  })

  test('when its caller had already disconnected: the gateway is not called', async () => {
    const handler = keeping()

    await expect(callGateway(handler, CALL, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'client_closed_request',
    })
    expect(handler.request).toBeUndefined()
  })

  test('when the gateway cuts it', async () => {
    const handler = keeping()
    const answer = callGateway(handler, CALL, { signal: never })
    handler.sink?.head(200, [])
    handler.sink?.write('half')
    handler.sink?.destroy()

    await expect(answer).rejects.toMatchObject({ code: 'upstream_invalid_response' })
  })

  test('when the answer exceeds the limit: the gateway sees a disconnect', async () => {
    const handler = keeping()
    const answer = callGateway(handler, CALL, { signal: never, limitBytes: 10 })
    let seen = 0
    handler.sink?.onClose(() => seen++)
    handler.sink?.head(200, [])
    handler.sink?.write('123456')
    handler.sink?.write('789012')

    await expect(answer).rejects.toMatchObject({ code: 'upstream_invalid_response' })
    expect(seen).toBe(1)
  })
})
