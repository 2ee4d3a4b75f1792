import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../src/core/events.ts'
import type { GatewayOptions } from '../../src/gateway/gateway-options.ts'
import type { AnyHook } from '../../src/hooks/hook.ts'
import type { GatewayStore } from '../../src/stores/gateway-store.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import {
  chatBody,
  type StartedGateway,
  startGateway,
  TEST_ACCOUNT,
  TEST_KEY,
  TEST_MODELS,
} from '../support/start-gateway.ts'
import { type AnswerCall, type AnsweringVendor, answeringVendor, json } from './answering-vendor.ts'
import { askGateway, databasePaths, storeOf } from './two-accounts.ts'

const MODEL = 'chat-relayed'
const USAGE = { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 }
const database = databasePaths()
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

interface Bench extends StartedGateway {
  readonly vendor: AnsweringVendor
}

/** A gateway in front of one vendor that a test scripts. */
async function start(answer: AnswerCall, options: Partial<GatewayOptions> = {}): Promise<Bench> {
  const vendor = await answeringVendor(answer)
  open.push(vendor)
  return await startBefore(vendor, options)
}

async function startBefore(vendor: AnsweringVendor, options: Partial<GatewayOptions> = {}): Promise<Bench> {
  const started = await startGateway({
    vendors: [openaiCompatible({ id: 'one', baseURL: vendor.origin, apiKey: 'k', models: [] })],
    models: [{ ...TEST_MODELS[0], vendor: 'one', routes: [{ vendor: 'one' }] }],
    ...options,
  })
  open.push(started)
  return { ...started, vendor }
}

function whole(response: ServerResponse, usage: object | null = USAGE): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'hi', refusal: null }, finish_reason: 'stop' }]
  json(response, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage })
}

const withholding: AnyHook = {
  name: 'guard',
  chargeDenied: false,
  answer: () => ({ deny: { message: 'no', as: 'error' } }),
}

/** Keeps its calls open until it is told to answer them. */
function waitingVendor(): { readonly answer: AnswerCall; release(): void; readonly asked: Promise<void> } {
  const responses: ServerResponse[] = []
  let onAsked!: () => void
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve
  })
  return {
    asked,
    answer(response) {
      responses.push(response)
      onAsked()
    },
    release() {
      for (const response of responses.splice(0)) whole(response)
    },
  }
}

/** A hook that waits for the test with an answer before it. */
function heldBack(): { readonly hook: AnyHook; readonly asked: Promise<void>; release(): void } {
  let onAsked!: () => void
  let release!: () => void
  const asked = new Promise<void>((resolve) => {
    onAsked = resolve
  })
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const hook: AnyHook = {
    name: 'slow',
    async answer() {
      onAsked()
      await released
    },
  }
  return { hook, asked, release }
}

async function accepted(started: StartedGateway, body: object = {}): Promise<string> {
  const request = { model: MODEL, input: 'hello', max_output_tokens: 500, background: true, ...body }
  const [status, answer] = await askGateway(started, 'POST', '/v1/responses', request)
  expect([status, answer['status']]).toEqual([200, 'queued'])
  return String(answer['id'])
}

function unbilled({ events }: StartedGateway): Extract<GatewayEvent, { type: 'unbilled-usage' }>[] {
  return events.filter((event) => event.type === 'unbilled-usage')
}

const stateIn = async (store: GatewayStore, id: string): Promise<string | undefined> =>
  (await store.tasks.find(TEST_ACCOUNT, id))?.state

/** What was begun has gone as far as it can without the clock. */
async function settledTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('an answer in the background that fails is charged and told as any other', () => {
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

  test('where the vendor breaks off and the host charges for that', async () => {
    const { cost, told } = await compare(breakOff, { chargeBrokenAnswers: true })
    expect([cost > 0n, told.length]).toEqual([true, 0])
  })

  test.each([true, false])('where a hook withholds the answer (charged: %s)', async (chargeDenied) => {
    const guard: AnyHook = { name: 'guard', chargeDenied, answer: () => ({ deny: { message: 'no', as: 'error' } }) }
    const { cost, told } = await compare((response) => whole(response), { hooks: [guard] })
    expect([cost > 0n, told.length]).toEqual([chargeDenied, chargeDenied ? 0 : 1])
  })
})

test('an answer in the background that a hook replaces without a charge is told', async () => {
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

test.each(['memory', 'sqlite'])(
  'an answer in the background with items that are none is kept and charged (%s)',
  async (driver) => {
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
    const vendor = await answeringVendor((response) => json(response, made))
    open.push(vendor)
    const options = { vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })], models: [...TEST_MODELS] }
    const started = await startBefore(vendor, { ...storeOf(driver, database.path), ...options })
    const before = await started.account()
    const end = await started.taskEnded(await accepted(started))
    const [status, read] = await askGateway(started, 'GET', `/v1/responses/${end.taskId}`)
    const after = await started.account()

    expect([status, read['status'], end.state]).toEqual([200, 'completed', 'completed'])
    expect(end.costNanoDollars).toBeGreaterThan(0n)
    expect([before.balance - after.balance, after.held]).toEqual([end.costNanoDollars, 0n])
  },
)

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

  test.each([{}, { chargeBrokenAnswers: true }])(
    'tells what it stops in the background and asks for again, and the last answer is charged (%j)',
    async (options) => {
      const store = memoryStore()
      let calls = 0
      const answer: AnswerCall = (response) => {
        calls++
        if (calls > 1) return whole(response)
        if (options.chargeBrokenAnswers !== true) return
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 4_200 })
        response.write('{"id":"c",')
      }
      const started = await start(answer, { store, ...options })
      const before = await started.account()
      const id = await accepted(started)
      await expect.poll(() => calls).toBe(1)
      await started.gateway.close({ drainMs: 0 })
      const told = unbilled(started)
      const state = await stateIn(store, id)
      const next = await startBefore(started.vendor, { store, ...options })
      const end = await next.taskEnded(id)

      expect(told).toEqual([expect.objectContaining({ isEstimated: true })])
      if (options.chargeBrokenAnswers !== true) expect(told[0]?.usage.outputTokens).toBe(500)
      expect([state, end.state, calls, unbilled(next)]).toEqual(['queued', 'completed', 2, []])
      const after = await next.account()
      expect([before.balance + CREDIT - after.balance, after.held]).toEqual([end.costNanoDollars, 0n])
    },
  )

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

test('an end that the store has taken without saying so is charged and not told', async () => {
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

/** `startGateway` credits the account each time. */
const CREDIT = 100_000_000_000n

describe('an answer in the background whose task has ended by its deadline', () => {
  test.each([
    ['comes later', false],
    ['is then stopped', true],
  ])('costs nothing and is told once, where it %s', async (_name, isStopped) => {
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

describe('an answer in the background that its owner cancels', () => {
  const cancel = (started: StartedGateway, id: string) => askGateway(started, 'POST', `/v1/responses/${id}/cancel`)

  test('costs what it costs to leave the same answer, and nothing is told', async () => {
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
    // A submission says a few words more than its run, which is measured anew.
    expect(Number(end.costNanoDollars - costNanoDollars) / Number(costNanoDollars)).toBeCloseTo(0, 1)
    expect([...unbilled(started), ...unbilled(other)]).toEqual([])
  })

  test('is charged and not told where the process that runs it closes before it finds out', async () => {
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
    ['gives what is no answer and the host charges for that', { chargeBrokenAnswers: true }],
    ['answers what a hook withholds without a charge', { hooks: [withholding] }],
  ])('is charged by another process and not told where the vendor then %s', async (_name, options) => {
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
