import { expect, test } from 'vitest'
import { sandboxVendors } from '../../../src/testing/index.ts'

const ask = (origin: string, text = 'hi') =>
  fetch(`${origin}/v1/chat/completions?trace=1`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-1', 'X-Custom': 'a' },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: text }] }),
  })

test('keeps what it received, up to a bound', async () => {
  const sandbox = sandboxVendors({ maxRequests: 2 })
  const { origin, port } = await sandbox.listen()

  for (const text of ['one', 'two', 'three']) await (await ask(origin, text)).text()

  expect(origin).toBe(`http://127.0.0.1:${port}`)
  expect(sandbox.requests).toHaveLength(2)
  expect(sandbox.requests[1]).toMatchObject({
    vendor: 'openai',
    operation: 'chat',
    method: 'POST',
    path: '/v1/chat/completions',
    query: 'trace=1',
    headers: { authorization: 'Bearer sk-1', 'x-custom': 'a' },
    body: { messages: [{ content: 'three' }] },
  })
  expect((await sandbox.nextRequest()).body).toMatchObject({ messages: [{ content: 'one' }] })
  await sandbox.close()
})

test('closes with calls and idle connections open, twice without harm, and listens again', async () => {
  const sandbox = sandboxVendors()
  const first = await sandbox.listen()
  await (await ask(first.origin)).text()
  const hanging = ask(first.origin, '[[fault:hang]]')
  const failing = expect(hanging).rejects.toThrow('fetch failed')
  await sandbox.nextRequest()
  await sandbox.nextRequest()
  expect(sandbox.openConnections).toBeGreaterThan(0)

  await sandbox.close()
  await sandbox.close()
  await failing
  const second = await sandbox.listen()

  expect((await ask(second.origin)).status).toBe(200)
  expect(sandbox.openCalls).toBe(0)
  await sandbox.close()
})

test('refuses to listen twice at once, and says when a port is taken', async () => {
  const [one, two] = [sandboxVendors(), sandboxVendors()]
  const { port } = await one.listen()

  await expect(one.listen()).rejects.toThrow('listen already')
  await expect(two.listen(port)).rejects.toThrow('EADDRINUSE')

  await one.close()
})

test('equal calls get equal answers', async () => {
  const sandbox = sandboxVendors({ clock: { now: () => 0, schedule: () => ({ cancel: () => undefined }) } })
  const { origin } = await sandbox.listen()

  const [left, right] = await Promise.all([(await ask(origin)).text(), (await ask(origin)).text()])

  expect(left).toBe(right)
  await sandbox.close()
})
