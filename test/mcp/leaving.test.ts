import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { TEST_KEY } from '../support/start-gateway.ts'
import { ERAS, type Era } from './support/mcp-client.ts'
import { type StartedMcp, startMcp } from './support/start-mcp.ts'
import { callTool } from './support/tool-result.ts'

const SLOW = { model: 'chat-relayed', messages: [{ role: 'user', content: '[[fault:hang]] a prompt' }] }

/** Whole answers are read on for a while when nobody waits for them any more; not long here. */
const QUICK = { gateway: { drainMs: 100 } }

let started: StartedMcp

afterEach(() => started.close())

describe.each(Object.keys(ERAS) as Era[])('in revision %s', (era) => {
  test('a call that its client cancels is stopped at the vendor and charged once', async () => {
    started = await startMcp(QUICK)
    const client = await started.connect({ era })
    const stop = new AbortController()
    const calling = callTool(client, 'chat_complete', SLOW, { signal: stop.signal })
    calling.catch(() => undefined)
    await started.sandbox.nextRequest()
    const ending = started.nextEnded()

    stop.abort()

    await expect(calling).rejects.toThrow()
    await started.sandbox.nextAbort()
    const { ending: kind, costNanoDollars } = await ending
    expect(kind).toBe('abandoned')
    expect(costNanoDollars).toBeGreaterThan(0n)
    expect((await started.account()).held).toBe(0n)
  })

  test('the next call of the same client is answered as if nothing had been', async () => {
    started = await startMcp(QUICK)
    const client = await started.connect({ era })
    const stop = new AbortController()
    const calling = callTool(client, 'chat_complete', SLOW, { signal: stop.signal })
    calling.catch(() => undefined)
    await started.sandbox.nextRequest()
    stop.abort()
    await started.sandbox.nextAbort()

    expect((await callTool(client, 'get_balance', {})).structured).toMatchObject({ currency: 'USD' })
  })
})

test('a caller whose connection breaks during a call stops it at the vendor', async () => {
  started = await startMcp(QUICK)
  const params = { name: 'chat_complete', arguments: SLOW }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const socket = connect(started.mounted.port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(
    [
      'POST /mcp HTTP/1.1',
      'host: localhost',
      `authorization: Bearer ${TEST_KEY}`,
      'content-type: application/json',
      'accept: application/json, text/event-stream',
      'mcp-protocol-version: 2025-11-25',
      `content-length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  )
  await started.sandbox.nextRequest()
  const ending = started.nextEnded()

  const leftAtMs = Date.now()
  socket.destroy()

  expect((await started.sandbox.nextAbort()) - leftAtMs).toBeLessThan(500)
  expect((await ending).ending).toBe('abandoned')
})

test('a cancellation reaches no call of another key, and none of another client of the same key', async () => {
  started = await startMcp(QUICK)
  const { key: otherKey } = await started.gateway.keys.create({ accountId: 'acct_test' })
  const post = (message: object, session: string, key = TEST_KEY) =>
    fetch(started.mcpUrl, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': session,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    })
  const cancel = { method: 'notifications/cancelled', params: { requestId: 7 } }
  const slow = { model: 'chat-relayed', messages: [{ role: 'user', content: '[[fault:delay=300]] hello' }] }
  const calling = post({ id: 7, method: 'tools/call', params: { name: 'chat_complete', arguments: slow } }, 'one')
  await started.sandbox.nextRequest()

  expect((await post(cancel, 'two')).status).toBe(202)
  expect((await post(cancel, 'one', otherKey)).status).toBe(202)

  expect(await (await calling).text()).toContain('You said: hello')
  expect(started.sandbox.aborted).toBe(0)
})

test('closing the server ends what is under way and refuses what comes', async () => {
  started = await startMcp(QUICK)
  const client = await started.connect()
  const calling = callTool(client, 'chat_complete', SLOW)
  calling.catch(() => undefined)
  await started.sandbox.nextRequest()

  await started.mcp.close()

  await started.sandbox.nextAbort()
  const refused = await fetch(started.mcpUrl, { method: 'POST', headers: { authorization: `Bearer ${TEST_KEY}` } })
  expect(refused.status).toBe(503)
  await client.close()
  await expect(calling).rejects.toThrow()
})
