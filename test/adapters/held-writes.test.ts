import type { RequestListener, ServerResponse } from 'node:http'
import fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { fastifyGateway } from '../../src/adapters/fastify.ts'
import { FastifyExchange } from '../../src/adapters/fastify-exchange.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import { endOfTurn } from '../../src/core/calls-in-flight.ts'
import type { ByteSink, ExchangeHandler } from '../../src/core/exchange.ts'
import { listen } from '../support/listen.ts'
import { deferred } from './support/deferred.ts'
import type { Mounted } from './support/mounts.ts'
import { RawClient } from './support/raw-client.ts'

let mounted: Mounted | undefined

afterEach(async () => {
  await mounted?.close()
  mounted = undefined
})

/** One request over a real socket: the response of Node, and the sink of the gateway for it. */
interface Begun {
  readonly sink: ByteSink
  readonly response: ServerResponse
  readonly client: RawClient
}

/** Sends a request to a mounted gateway that does nothing by itself. */
async function begun(prepare: (response: ServerResponse) => void = () => undefined): Promise<Begun> {
  const arrived = deferred<ByteSink>()
  const responses: ServerResponse[] = []
  const handler = nodeHandler({ handle: (_request, sink) => arrived.resolve(sink) })
  const listener: RequestListener = (request, response) => {
    responses.push(response)
    prepare(response)
    handler(request, response)
  }
  mounted = await listen(listener)
  const client = await RawClient.open(mounted.port)
  client.send('GET', '/')
  return { sink: await arrived.promise, response: responses[0]!, client }
}

const heldBytes = ({ response }: Begun): number => response.socket?.writableLength ?? 0

describe('what is written within a turn of the event loop', () => {
  it('goes to the socket when the turn ends, in its order', async () => {
    const call = await begun()
    call.sink.head(200, ['content-type', 'text/event-stream'])
    call.sink.write('data: 1\n\n')
    call.sink.write(Buffer.from('data: 2\n\n'))

    expect(heldBytes(call)).toBeGreaterThan(20)
    await endOfTurn()
    expect(heldBytes(call)).toBe(0)
    call.sink.write('data: 3\n\n')
    call.sink.end(Buffer.from('data: [DONE]\n\n'))
    const text = await call.client.until('0\r\n\r\n')
    expect(text.match(/data: \S+/g)).toEqual(['data: 1', 'data: 2', 'data: 3', 'data: [DONE]'])
    call.client.leave()
  })

  it('is sent at once where it is much, since it fills packets of its own', async () => {
    const call = await begun()
    call.sink.head(200, ['content-type', 'application/octet-stream'])
    call.sink.write(Buffer.alloc(8 * 1024 + 1, 'x'))
    // Node itself keeps the pieces of one chunk together until the next tick.
    await new Promise((resolve) => process.nextTick(resolve))

    expect(heldBytes(call)).toBe(0)
    call.client.leave()
  })

  it('reaches the caller although the answer is broken off in the same turn', async () => {
    const call = await begun()
    call.sink.head(200, ['content-type', 'text/event-stream'])
    call.sink.write('data: {"error":{}}\n\n')
    call.sink.destroy()

    expect(await call.client.ended()).toContain('data: {"error":{}}\n\n')
  })

  it('is sent immediately if there is middleware between response and socket', async () => {
    const written: unknown[] = []
    const call = await begun((response) => {
      const write = response.write.bind(response)
      response.write = ((bytes: string) => {
        written.push(bytes)
        return write(bytes)
      }) as ServerResponse['write']
    })
    call.sink.head(200, ['content-type', 'text/event-stream'])
    call.sink.write('data: 1\n\n')
    await new Promise((resolve) => process.nextTick(resolve))

    expect({ written, held: heldBytes(call) }).toEqual({ written: ['data: 1\n\n'], held: 0 })
    call.client.leave()
  })
})

describe('whole answers of a turn', () => {
  const ending =
    (body: string, length = body.length): ((sink: ByteSink) => void) =>
    (sink) => {
      sink.head(200, ['content-length', String(length)])
      sink.end(Buffer.from(body))
    }

  it('are sent though one of them cannot be', async () => {
    const broken = await begun((response) => {
      response.strictContentLength = true
    })
    const first = mounted
    const whole = await begun()
    ending('too short', 100)(broken.sink)
    ending('{"ok":true}')(whole.sink)

    expect(await whole.client.until('{"ok":true}')).toContain('HTTP/1.1 200 OK')
    expect(await broken.client.ended()).toBe('')
    whole.client.leave()
    await first?.close()
  })

  it('are not sent before its end, and not to a disconnected caller', async () => {
    const call = await begun()
    ending('{"ok":true}')(call.sink)

    expect(call.response.writableEnded).toBe(false)
    call.client.leave()
    call.response.destroy()
    await endOfTurn()
    expect(call.response.writableFinished).toBe(false)
  })

  it('are sent though a reply of Fastify throws', async () => {
    const call = await begun()
    const raw = call.response
    const nothing = (): undefined => undefined
    const throwing = (): never => {
      throw new Error('no reply')
    }
    const reply = { raw, hijack: nothing, code: nothing, header: nothing, getHeaders: () => ({}), send: throwing }
    const exchange = new FastifyExchange(raw.req, reply, '/', undefined)
    ending('{"lost":true}')(exchange)
    await endOfTurn()

    expect(raw.destroyed).toBe(true)
    expect(await call.client.ended()).toBe('')
  })

  it('pass the hooks of Fastify when it ends', async () => {
    const seen: unknown[] = []
    const gateway: ExchangeHandler = { handle: (_request, sink) => ending('{"ok":true}')(sink) }
    const app = fastify()
    app.addHook('onSend', async (_request, _reply, payload) => void seen.push(String(payload)))
    await app.register(fastifyGateway, { gateway, prefix: '/ai' })
    await app.ready()
    mounted = await listen(app.server)

    expect(await (await fetch(`${mounted.origin}/ai/v1/models`)).json()).toEqual({ ok: true })
    expect(seen).toEqual(['{"ok":true}'])
    await app.close()
  })
})
