import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { startChild } from '../../bench/child-process.mjs'
import { listen } from '../support/listen.ts'

const REQUEST = 'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'

test('sends requests at the rate of an open load even if no earlier one has been answered', async () => {
  const waiting: ServerResponse[] = []
  const { port, close } = await listen((_, response) => {
    waiting.push(response)
    if (waiting.length === 20) for (const each of waiting) each.setHeader('content-length', 2).end('ok')
  })
  const driver = await startChild(new URL('../../bench/driver.mjs', import.meta.url), {})
  try {
    await driver.ask('open', { port, count: 2 })
    const load = { port, requests: [REQUEST], perSecond: 100, durationMs: 200, expectedBytes: 2 }
    const result = await driver.ask('runAtRate', load)

    expect(result).toMatchObject({ answers: 20, faults: [] })
    // The first request is answered with the last one, which is sent 19 intervals later.
    expect(result.p99Ms).toBeGreaterThanOrEqual(190)
    expect(result.elapsedMs).toBeGreaterThanOrEqual(190)
  } finally {
    await driver.stop()
    await close()
  }
})
