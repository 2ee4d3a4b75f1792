import { expect, test } from 'vitest'
import { fakeClock } from '../../../src/testing/index.ts'
import { memoryTransport } from '../../../src/testing/sandbox/transports.ts'
import type { TransportRequest } from '../../../src/transport/transport.ts'

test.each<[string, TransportRequest['body'], string]>([
  ['in pieces', [Buffer.from('one'), new Uint8Array(0), new Uint8Array([0x74, 0x77, 0x6f])], 'onetwo'],
  ['of no pieces', [], ''],
  ['of bytes', new Uint8Array([0x61]), 'a'],
  ['of text', 'ü', 'ü'],
  ['that is none', null, ''],
])('a body %s reaches the stand-in as one', async (_title, body, expected) => {
  const received = await new Promise<Uint8Array>((resolve) => {
    const transport = memoryTransport((call, connection) => {
      connection.end()
      resolve(call.bytes)
    }, fakeClock())
    transport.send(
      {
        origin: 'https://vendor.example',
        path: '/',
        method: 'POST',
        headers: [],
        body,
        firstByteTimeoutMs: 1,
        idleTimeoutMs: 1,
      },
      { onHead: () => undefined, onData: () => undefined, onEnd: () => undefined, onFailure: () => undefined },
    )
  })

  expect(Buffer.from(received).toString()).toBe(expected)
})
