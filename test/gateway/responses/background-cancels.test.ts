import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { type StartedGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { askGateway } from '../money/two-accounts.ts'
import { type AnswerCall, json } from '../streams/answering-vendor.ts'
import {
  accepted,
  benches,
  heldBack,
  MODEL,
  settledTurns,
  stateIn,
  unbilled,
  whole,
  withholding,
} from './background-gateway.ts'

const { start, startBefore } = benches()

describe('an answer in the background that its owner cancels', () => {
  const cancel = (started: StartedGateway, id: string) => askGateway(started, 'POST', `/v1/responses/${id}/cancel`)

  test('costs as much as a disconnect from the same answer, and emits no event', async () => {
    const started = await start(() => undefined, { drainMs: 1 })
    const { vendor } = started
    const leaving = new AbortController()
    const ending = started.nextEnded()
    const body = { model: MODEL, input: 'hello', max_output_tokens: 500 }
    const left = started.post('/v1/responses', body, {}, leaving.signal).catch(() => undefined)
    await expect.poll(() => vendor.calls).toBe(1)
    leaving.abort()
    await left
    const { costNanoDollars, usage } = await ending
    const id = await accepted(started)
    await expect.poll(() => vendor.calls).toBe(2)
    const [status, answer] = await cancel(started, id)
    const end = await started.taskEnded(id)

    expect([status, answer['status'], answer['error']]).toEqual([200, 'cancelled', null])
    expect(usage).toMatchObject({ outputTokens: 500 })
    expect([end.state, end.costNanoDollars, end.usage]).toEqual(['cancelled', costNanoDollars, usage])
    await expect.poll(() => vendor.aborted).toBe(2)
    expect([unbilled(started), (await started.account()).held]).toEqual([[], 0n])
  })

  test('is charged by a process that does not run it as by the one that does', async () => {
    const clock = fakeClock()
    const store = memoryStore()
    const started = await start(() => undefined, { store, clock })
    const { vendor } = started
    const other = await startBefore(vendor, { store })
    const own = await accepted(started)
    await expect.poll(() => vendor.calls).toBe(1)
    await cancel(started, own)
    const { costNanoDollars, usage } = await started.taskEnded(own)
    const foreign = await accepted(started)
    await expect.poll(() => vendor.calls).toBe(2)
    const [, answer] = await cancel(other, foreign)
    const end = await other.taskEnded(foreign)
    clock.advance(20_000)
    await expect.poll(() => vendor.aborted).toBe(2)
    await settledTurns()

    expect([answer['status'], end.usage?.outputTokens]).toEqual(['cancelled', usage?.outputTokens])
    // A submission has a few more words than its run, which is measured again.
    expect(Number(end.costNanoDollars - costNanoDollars) / Number(costNanoDollars)).toBeCloseTo(0, 1)
    expect([...unbilled(started), ...unbilled(other)]).toEqual([])
  })

  test('is charged without an event if the process that runs it closes before it notices', async () => {
    const store = memoryStore()
    const started = await start(() => undefined, { store })
    const other = await startBefore(started.vendor, { store })
    const id = await accepted(started)
    await expect.poll(() => started.vendor.calls).toBe(1)
    await cancel(other, id)
    const end = await other.taskEnded(id)
    await started.gateway.close({ drainMs: 1 })

    expect([end.state, end.usage?.outputTokens]).toEqual(['cancelled', 500])
    expect([await stateIn(store, id), started.vendor.calls]).toEqual(['cancelled', 1])
    expect([...unbilled(started), ...unbilled(other)]).toEqual([])
  })

  test.each([
    ['gives what is no answer', {}],
    ['answers what a hook withholds without a charge', { hooks: [withholding] }],
  ])('is charged by another process without an event if the vendor then %s', async (_name, options) => {
    const store = memoryStore()
    const responses: ServerResponse[] = []
    const started = await start((response) => void responses.push(response), { store, ...options })
    const other = await startBefore(started.vendor, { store })
    const before = await other.account()
    const id = await accepted(started)
    await expect.poll(() => responses.length).toBe(1)
    await cancel(other, id)
    const end = await other.taskEnded(id)
    if ('hooks' in options) whole(responses[0]!)
    else responses[0]!.end('{"id":"c","choices":[')
    await started.gateway.close()

    expect([end.state, end.usage?.outputTokens, responses.length]).toEqual(['cancelled', 500, 1])
    expect(await other.account()).toEqual({ balance: before.balance - end.costNanoDollars, held: 0n })
    expect([...unbilled(started), ...unbilled(other)]).toEqual([])
  })

  test('costs nothing while it waits for its turn', async () => {
    const started = await start(() => undefined, { limits: { concurrency: 1 } })
    const before = await started.account()
    const first = await accepted(started)
    await expect.poll(() => started.vendor.calls).toBe(1)
    const waiting = await accepted(started)
    const [, answer] = await cancel(started, waiting)
    const end = await started.taskEnded(waiting)

    expect([answer['status'], end.costNanoDollars]).toEqual(['cancelled', 0n])
    await cancel(started, first)
    const { costNanoDollars } = await started.taskEnded(first)
    expect(await started.account()).toEqual({ balance: before.balance - costNanoDollars, held: 0n })
    expect(started.vendor.calls).toBe(1)
  })

  test('is kept and charged where it has come before', async () => {
    const { hook, asked, release } = heldBack()
    const started = await start((response) => whole(response), { hooks: [hook] })
    const id = await accepted(started)
    await asked
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    const url = `http://gateway.invalid/v1/responses/${id}/cancel`
    const cancelling = started.gateway.fetch(new Request(url, { method: 'POST', headers }))
    await settledTurns()
    release()
    const answer = (await (await cancelling).json()) as Record<string, unknown>
    const end = await started.taskEnded(id)

    expect([answer['status'], end.state, end.usage?.outputTokens]).toEqual(['completed', 'completed', 9])
    expect(unbilled(started)).toEqual([])
  })

  test('is completed where its answer has come and waits for the store', async () => {
    const store = memoryStore()
    let failed = 0
    const change: typeof store.tasks.change = (wanted, nowMs) => {
      if (wanted.set.state === 'completed' && failed++ === 0) throw new Error('the store is away')
      return store.tasks.change(wanted, nowMs)
    }
    const options = { store: { ...store, tasks: { ...store.tasks, change } }, clock: fakeClock() }
    const started = await start((response) => whole(response), options)
    const id = await accepted(started)
    await expect.poll(() => failed).toBe(1)
    await settledTurns()
    const [status, answer] = await cancel(started, id)
    const end = await started.taskEnded(id)

    expect([status, answer['status'], end.state, end.usage?.outputTokens]).toEqual([200, 'completed', 'completed', 9])
    expect(unbilled(started)).toEqual([])
  })

  test('is given as it ended where the vendor refused it before', async () => {
    const refuse: AnswerCall = (response) =>
      json(response, { error: { message: 'no', type: 'invalid_request_error' } }, 400)
    const started = await start(refuse)
    const end = await started.taskEnded(await accepted(started))
    const [, answer] = await cancel(started, end.taskId)

    expect([answer['status'], end.costNanoDollars, unbilled(started)]).toEqual(['failed', 0n, []])
  })
})
