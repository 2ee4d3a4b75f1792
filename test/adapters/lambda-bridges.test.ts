import { describe, expect, it } from 'vitest'
import { expressHandler } from '../../src/adapters/express.ts'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { ByteSink } from '../../src/core/exchange.ts'
import { handling } from './support/handling.ts'
import { callBridged } from './support/lambda-bridge.ts'
import { express4 } from './support/mounts.ts'

const TEXT = 'é日本 '.repeat(40)

const answer = (sink: ByteSink): void => {
  sink.head(200, ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(TEXT))])
  sink.end(Buffer.from(TEXT))
}

/** Streams as the pipeline does: writes nothing after a `false` until the sink drains. */
const stream = (sink: ByteSink): void => {
  const events = ['data: é日本\n\n', 'data: 2\n\n', 'data: 3\n\n']
  const go = (): void => {
    for (let event = events.shift(); event !== undefined; event = events.shift()) if (!sink.write(event)) return
    sink.end(Buffer.from('data: [DONE]\n\n'))
  }
  sink.head(200, ['content-type', 'text/event-stream'])
  sink.onDrain(go)
  go()
}

const MOUNTS = {
  nodeHandler: (run: (sink: ByteSink) => void) => nodeHandler(handling((_request, sink) => run(sink))),
  expressHandler: (run: (sink: ByteSink) => void) =>
    express4().use(expressHandler(handling((_request, sink) => run(sink)))),
}

describe.each(Object.entries(MOUNTS))('%s behind a Lambda bridge', (_name, mount) => {
  it.each([true, undefined] as const)(
    'sends a small answer with the bytes of its content-length if write returns %s',
    async (writeResult) => {
      const sent = await callBridged(mount(answer), { url: '/v1/x', writeResult })

      expect([sent.status, sent.body.toString(), sent.body.length]).toEqual([200, TEXT, sent.contentLength])
    },
  )

  it.each([true, undefined] as const)('ends a stream if write returns %s', async (writeResult) => {
    const sent = await callBridged(mount(stream), { url: '/v1/x', writeResult })

    expect(sent.body.toString()).toBe('data: é日本\n\ndata: 2\n\ndata: 3\n\ndata: [DONE]\n\n')
  })
})
