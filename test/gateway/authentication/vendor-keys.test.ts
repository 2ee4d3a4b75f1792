import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { fakeClock, sandboxVendors } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined
afterEach(() => started?.close())

/** A gateway whose one vendor has two keys. */
async function withTwoKeys() {
  const clock = fakeClock()
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const two = await startGateway({ clock, vendors: [openai({ apiKey: ['key-one', 'key-two'], baseURL: origin })] })
  started = { ...two, close: () => two.close().then(() => sandbox.close()) }
  const ids = two.gateway.routes().vendors.flatMap(({ keys }) => keys.map(({ credentialId }) => credentialId))
  const ask = async () => {
    const response = await two.post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))
    await two.ended(response)
    return response.status
  }
  const used = async () => {
    const { records } = await two.gateway.usage.records({ limit: 1 })
    return records[0]?.credentialId
  }
  return { two, clock, ids, ask, used }
}

describe('a vendor key that the operator ejects', () => {
  test('is not used while another can answer, and probed when its ejection is over', async () => {
    const { two, clock, ids, ask, used } = await withTwoKeys()
    const [one = '', other = ''] = ids
    const untilMs = two.gateway.vendorKeys.eject(one, { forMs: 60_000 })
    const credentials: unknown[] = []
    for (let turn = 0; turn < 6; turn++) {
      expect(await ask()).toBe(200)
      clock.advance(1)
      credentials.push(await used())
    }
    const [report] = two.gateway.routes().vendors[0]?.keys ?? []
    clock.advance(60_000)
    const [later] = two.gateway.routes().vendors[0]?.keys ?? []

    expect(new Set(credentials)).toEqual(new Set([other]))
    expect(report).toMatchObject({ circuit: 'open', reason: 'operator', openUntilMs: untilMs })
    expect(later?.circuit).toBe('half-open')
  })

  test('is used where it is the only one left', async () => {
    const { two, ids, ask } = await withTwoKeys()
    for (const id of ids) two.gateway.vendorKeys.eject(id)

    expect(await ask()).toBe(200)
  })

  test('is used again when it is restored', async () => {
    const { two, ids } = await withTwoKeys()
    const [one = ''] = ids
    two.gateway.vendorKeys.eject(one)
    two.gateway.vendorKeys.restore(one)
    two.gateway.vendorKeys.restore(one)

    expect(two.gateway.routes().vendors[0]?.keys[0]).toMatchObject({
      circuit: 'closed',
      reason: null,
      openUntilMs: null,
    })
    expect(two.events.filter(({ type }) => type.startsWith('circuit')).map(({ type }) => type)).toEqual([
      'circuit-opened',
      'circuit-closed',
    ])
  })

  test('must exist, for a time that makes sense', async () => {
    const { two, ids } = await withTwoKeys()
    const { vendorKeys } = two.gateway

    expect(() => vendorKeys.eject('openai:0')).toThrow(
      expect.objectContaining({ code: 'invalid_request', param: 'credentialId' }),
    )
    expect(() => vendorKeys.restore('openai:0')).toThrow(expect.objectContaining({ param: 'credentialId' }))
    for (const forMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => vendorKeys.eject(ids[0] ?? '', { forMs })).toThrow(expect.objectContaining({ param: 'forMs' }))
  })
})

describe('further listeners', () => {
  test('are notified until they end, and one that throws does not affect the others', async () => {
    const host: GatewayEvent[] = []
    started = await startGateway({ onEvent: (event) => void host.push(event) })
    const { gateway, post } = started
    const told: GatewayEvent[] = []
    const stopThrowing = gateway.listen(() => {
      throw new Error('a listener at fault')
    })
    const stop = gateway.listen((event) => void told.push(event))
    const ask = async () => (await post('/v1/chat/completions', chatBody('chat-relayed', 'hello'))).text()
    await ask()
    const [hostCount, toldCount] = [host.length, told.length]
    stop()
    stop()
    stopThrowing()
    await ask()

    expect(toldCount).toBeGreaterThan(1)
    expect(hostCount).toBe(toldCount)
    expect(told).toHaveLength(toldCount)
    expect(host.length).toBeGreaterThan(hostCount)
  })

  test('are notified if the host has none', async () => {
    started = await startGateway({ onEvent: () => undefined })
    const told: string[] = []
    const stop = started.gateway.listen(({ type }) => void told.push(type))
    await (await started.post('/v1/nothing', {})).text()
    stop()

    expect(told).toEqual(['request-refused'])
  })
})

test("tasks of an account are listed for operators, others' are not found", async () => {
  started = await startGateway()
  const { gateway, post } = started
  const video = { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }
  const ids: string[] = []
  for (let turn = 0; turn < 3; turn++)
    ids.push(String((await (await post('/v1/videos/generations', video)).json()).task_id))
  const first = await gateway.tasks.list('acct_test', { limit: 2 })
  const second = await gateway.tasks.list('acct_test', { limit: 2, after: first.tasks[1]?.id })

  expect([...first.tasks, ...second.tasks].map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect([first.hasMore, second.hasMore]).toEqual([true, false])
  expect(await gateway.tasks.get('acct_other', ids[0] ?? '')).toBeUndefined()
  await expect(gateway.tasks.list('acct_other', { after: ids[0] })).rejects.toMatchObject({ param: 'after' })
  await expect(gateway.tasks.list('acct_test', { limit: 0 })).rejects.toMatchObject({ param: 'limit' })
})
