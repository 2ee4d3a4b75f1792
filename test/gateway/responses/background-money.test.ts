import { describe, expect, test } from 'vitest'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../../src/testing/fake-clock.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { chatBody, TEST_MODELS } from '../../support/start-gateway.ts'
import { askGateway, databasePaths, storeOf } from '../money/two-accounts.ts'
import { type AnswerCall, json } from '../streams/answering-vendor.ts'
import {
  accepted,
  benches,
  heldBack,
  MODEL,
  settledTurns,
  stateIn,
  unbilled,
  waitingVendor,
  whole,
} from './background-gateway.ts'

/** `startGateway` credits the account each time. */
const CREDIT = 100_000_000_000n

const database = databasePaths()
const { vendorOf, start, startBefore } = benches()

describe('a failed background answer is charged and reported like any other', () => {
  async function compare(answer: AnswerCall, options: Partial<GatewayOptions>) {
    const sums: { cost: bigint; told: object[]; held: bigint }[] = []
    for (const background of [false, true]) {
      const started = await start(answer, options)
      const before = await started.account()
      if (background) {
        const end = await started.taskEnded(await accepted(started))
        const [status, read] = await askGateway(started, 'GET', `/v1/responses/${end.taskId}`)
        expect([end.state, status, read['status']]).toEqual(['failed', 200, 'failed'])
        expect(before.balance - (await started.account()).balance).toBe(end.costNanoDollars)
      } else {
        const body = { model: MODEL, input: 'hello', max_output_tokens: 500 }
        const response = await started.post('/v1/responses', body)
        await started.ended(response)
      }
      const after = await started.account()
      const told = unbilled(started).map(({ usage, isEstimated }) => ({ usage, isEstimated }))
      sums.push({ cost: before.balance - after.balance, told, held: after.held })
    }
    expect(sums[1]).toEqual(sums[0])
    return sums[1]!
  }

  const breakOff: AnswerCall = (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 4_200 })
    response.write('{"id":"c","choices":[', () => response.destroy())
  }

  test('where the vendor breaks off', async () => {
    const { cost, told } = await compare(breakOff, {})
    expect([cost, told.length > 0]).toEqual([0n, true])
  })

  test.each([true, false])('where a hook withholds the answer (charged: %s)', async (chargeDenied) => {
    const guard: AnyHook = { name: 'guard', chargeDenied, answer: () => ({ deny: { message: 'no', as: 'error' } }) }
    const { cost, told } = await compare((response) => whole(response), { hooks: [guard] })
    expect([cost > 0n, told.length]).toEqual([chargeDenied, chargeDenied ? 0 : 1])
  })
})

test('reports a background answer that a hook replaces without a charge', async () => {
  const guard: AnyHook = {
    name: 'guard',
    chargeDenied: false,
    answer: () => ({ deny: { message: 'No.', as: 'refusal' } }),
  }
  const started = await start((response) => whole(response), { hooks: [guard] })
  const end = await started.taskEnded(await accepted(started))
  await settledTurns()

  expect([end.state, end.costNanoDollars]).toEqual(['completed', 0n])
  expect(unbilled(started)).toEqual([expect.objectContaining({ usage: expect.objectContaining({ outputTokens: 9 }) })])
})

test.each(['memory', 'sqlite'])('stores and charges a background answer with malformed items (%s)', async (driver) => {
  const output = [
    null,
    'text',
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'hi', annotations: [] }],
    },
  ]
  const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7 }
  const made = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'gpt-5.4',
    output,
    usage,
  }
  const vendor = await vendorOf((response) => json(response, made))
  const options = { vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [...TEST_MODELS] }
  const started = await startBefore(vendor, { ...storeOf(driver, database.path), ...options })
  const before = await started.account()
  const end = await started.taskEnded(await accepted(started))
  const [status, read] = await askGateway(started, 'GET', `/v1/responses/${end.taskId}`)
  const after = await started.account()

  expect([status, read['status'], end.state]).toEqual([200, 'completed', 'completed'])
  expect(end.costNanoDollars).toBeGreaterThan(0n)
  expect([before.balance - after.balance, after.held]).toEqual([end.costNanoDollars, 0n])
})

test('an answer in the background without a report counts against the token limit as any other', async () => {
  const remaining: number[] = []
  for (const background of [false, true]) {
    const limits = { tokensPerMinute: 100_000 }
    const started = await start((response) => whole(response, null), { limits, clock: fakeClock() })
    const input = 'hello '.repeat(10_000)
    if (background) await started.taskEnded(await accepted(started, { input }))
    else {
      const body = { model: MODEL, input, max_output_tokens: 500 }
      await started.ended(await started.post('/v1/responses', body))
    }
    const next = await started.post('/v1/chat/completions', chatBody(MODEL, 'x', { max_tokens: 16 }))
    remaining.push(Number(next.headers.get('x-ratelimit-remaining-tokens')))
  }
  expect(remaining[0]).toBeLessThan(90_000)
  expect(remaining[1]).toBe(remaining[0])
})

describe('a gateway that closes', () => {
  test('keeps an answer in the background that has come, and asks for it once', async () => {
    const clock = fakeClock()
    const store = memoryStore()
    const { hook, asked, release } = heldBack()
    const started = await start((response) => whole(response), { store, clock, hooks: [hook] })
    const id = await accepted(started)
    await asked
    const closing = started.gateway.close({ drainMs: 50 })
    await settledTurns()
    clock.advance(50)
    release()
    await closing

    expect([await stateIn(store, id), started.vendor.calls]).toEqual(['completed', 1])
    expect((await started.taskEnded(id)).costNanoDollars).toBeGreaterThan(0n)
    expect(unbilled(started)).toEqual([])
  })

  test('reports what it stops in the background and repeats, and charges the last answer', async () => {
    const store = memoryStore()
    let calls = 0
    const answer: AnswerCall = (response) => {
      calls++
      if (calls > 1) whole(response)
    }
    const started = await start(answer, { store })
    const before = await started.account()
    const id = await accepted(started)
    await expect.poll(() => calls).toBe(1)
    await started.gateway.close({ drainMs: 0 })
    const told = unbilled(started)
    const state = await stateIn(store, id)
    const next = await startBefore(started.vendor, { store })
    const end = await next.taskEnded(id)

    expect(told).toEqual([expect.objectContaining({ isEstimated: true })])
    expect(told[0]?.usage.outputTokens).toBe(500)
    expect([state, end.state, calls, unbilled(next)]).toEqual(['queued', 'completed', 2, []])
    const after = await next.account()
    expect([before.balance + CREDIT - after.balance, after.held]).toEqual([end.costNanoDollars, 0n])
  })

  test('offers an end again that the store has not taken, within the same time', async () => {
    const store = memoryStore()
    let failures = 1
    const change: typeof store.tasks.change = (wanted, nowMs) => {
      if (wanted.set.state === 'completed' && failures-- > 0) throw new Error('the connection was lost')
      return store.tasks.change(wanted, nowMs)
    }
    const { answer, asked, release } = waitingVendor()
    const started = await start(answer, { store: { ...store, tasks: { ...store.tasks, change } } })
    const id = await accepted(started)
    await asked
    const closing = started.gateway.close({ drainMs: 5_000 })
    release()
    await closing

    expect(failures).toBeLessThan(1)
    expect(started.events.filter(({ type }) => type === 'settlement-given-up')).toEqual([])
    expect(await stateIn(store, id)).toBe('completed')
  })
})

test('charges an end that the store has saved without confirmation, and emits no event', async () => {
  const store = memoryStore()
  let lost = 0
  const change: typeof store.tasks.change = (wanted, nowMs) => {
    const made = store.tasks.change(wanted, nowMs)
    if (wanted.set.state === 'completed' && lost++ === 0) throw new Error('the connection was lost')
    return made
  }
  const started = await start((response) => whole(response), { store: { ...store, tasks: { ...store.tasks, change } } })
  const before = await started.account()
  const id = await accepted(started)
  await expect.poll(() => lost).toBe(2)
  await settledTurns()

  expect(await stateIn(store, id)).toBe('completed')
  const after = await started.account()
  expect([after.held, before.balance > after.balance, unbilled(started)]).toEqual([0n, true, []])
})

describe('an answer in the background whose task has ended by its deadline', () => {
  test.each([
    ['comes later', false],
    ['is then stopped', true],
  ])('costs nothing and is reported once if it %s', async (_name, isStopped) => {
    const clock = fakeClock()
    const { answer, asked, release } = waitingVendor()
    const started = await start(answer, { clock, taskDeadlineMs: 2_000 })
    const before = await started.account()
    const id = await accepted(started)
    await asked
    clock.advance(10_000)
    const end = await started.taskEnded(id)
    if (isStopped) {
      // The next sign of life finds no task.
      clock.advance(20_000)
      await expect.poll(() => started.vendor.aborted).toBe(1)
    } else release()
    await expect.poll(() => unbilled(started).length).toBe(1)
    await settledTurns()

    expect([end.state, end.costNanoDollars, await started.account()]).toEqual(['failed', 0n, before])
    const usage = expect.objectContaining(isStopped ? { outputTokens: 500 } : { inputTokens: 20, outputTokens: 9 })
    expect(unbilled(started)).toEqual([expect.objectContaining({ isEstimated: isStopped, usage })])
  })
})
