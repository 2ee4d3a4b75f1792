import { afterEach, describe, expect, test } from 'vitest'
import { type ReloadablePrices, reloadablePrices } from '../../src/catalog/prices/prices.ts'
import { parseDollars } from '../../src/core/money.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { testPrices } from '../support/test-prices.ts'
import { CREDIT, type TaskBench, taskBench } from './support/task-bench.ts'

let bench: TaskBench

afterEach(() => bench.close())

async function toTheEnd(): Promise<void> {
  await bench.pass(50_000, 5_000)
}

async function charged(): Promise<bigint> {
  const { balance, held } = await bench.account()
  expect(held).toBe(0n)
  return CREDIT - balance
}

describe('what the vendor reports in any of its ways is what is charged', () => {
  // Four seconds in 720p were asked for, at ten cents a second.
  const shapes: readonly (readonly [marks: string, dollars: string])[] = [
    ['[[video:usage=ratio]]', '0.40'],
    ['[[video:usage=size]]', '0.40'],
    ['[[video:usage=size-x]]', '0.40'],
    ['[[video:usage=sr-text]]', '0.40'],
    ['[[video:usage=float]]', '0.40'],
    ['[[video:usage=video-duration]]', '0.40'],
    ['[[video:usage=video-ratio]]', '0.40'],
    ['[[video:usage=none]]', '0.40'],
    ['[[video:seconds=2]]', '0.20'],
    ['[[video:seconds=4.2]]', '0.42'],
    ['[[video:seconds=10]]', '1.00'],
    ['[[video:usage=size]] [[video:seconds=10]]', '1.00'],
    ['[[video:usage=size-x]] [[video:seconds=10]]', '1.00'],
    ['[[video:usage=video-duration]] [[video:seconds=10]]', '1.00'],
    ['[[video:usage=video-ratio]] [[video:seconds=10]]', '1.00'],
    ['[[video:usage=float]] [[video:seconds=10]]', '1.00'],
    ['[[video:input=5]]', '0.90'],
    ['[[video:usage=size]] [[video:input=5]]', '0.90'],
  ]

  test.each(shapes)('%s costs %s dollars', async (marks, dollars) => {
    bench = await taskBench()
    const id = await bench.submit(`${marks} a boat`)

    await toTheEnd()

    expect(await charged()).toBe(parseDollars(dollars))
    expect(parseDollars(String((await bench.read(id))['cost']))).toBe(parseDollars(dollars))
    expect(bench.events.filter(({ type }) => type === 'usage-implausible')).toEqual([])
  })

  test.each(['[[video:usage=absurd]]', '[[video:usage=negative]]', '[[video:seconds=600]]'])(
    'distrusts %s: it charges the hold, and notifies the operator',
    async (marks) => {
      bench = await taskBench()
      await bench.submit(`${marks} a boat`)

      await toTheEnd()

      expect(await charged()).toBe(parseDollars('0.40'))
      expect(bench.events).toContainEqual(
        expect.objectContaining({ type: 'usage-implausible', fields: ['videoSeconds'] }),
      )
    },
  )

  test('seconds of reference videos are charged beyond what was held, and what the balance lacks is owed', async () => {
    bench = await taskBench()
    const { key } = await bench.gateway.keys.create({
      accountId: (await bench.gateway.accounts.create({ id: 'acct_poor' })).id,
    })
    await bench.gateway.accounts.credit('acct_poor', '0.50')
    const media = [{ type: 'reference_video', url: 'https://cdn.example.net/a.mp4' }]
    const fields = { model: 'wv2.7-r2v', input: { prompt: '[[video:input=20]] Video 1 waves', media } }
    await bench.submit('', { fields, apiKey: key })

    await toTheEnd()
    const account = await bench.gateway.accounts.get('acct_poor')
    const entries = await bench.gateway.accounts.ledger('acct_poor', { limit: 10 })

    expect(account).toMatchObject({ balance: 0n, held: 0n, owed: 1_900_000_000n })
    expect(entries.map(({ kind, amount }) => [kind, amount])).toEqual(
      expect.arrayContaining([
        ['credit', 500_000_000n],
        ['charge', -500_000_000n],
        ['owed', 0n],
      ]),
    )
    // No event before.
    const told = { accountId: 'acct_poor', dueNanoDollars: 2_400_000_000n, chargedNanoDollars: 500_000_000n }
    expect(bench.events.filter(({ type }) => type === 'charge-shortfall')).toEqual([
      expect.objectContaining({ ...told, taskId: expect.stringMatching(/^task_/), owedNanoDollars: 1_900_000_000n }),
    ])
    expect(bench.events.find(({ type }) => type === 'task-ended')).toMatchObject({
      costNanoDollars: 500_000_000n,
      dueNanoDollars: 2_400_000_000n,
    })
  })
})

test.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:', clock: 'caller' })],
])(
  'emits one event per share of the account’s cap and balance that a video passes, on %s',
  async (_name, openStore) => {
    bench = await taskBench({ store: openStore() })
    const spendingCap = { amount: parseDollars('0.50'), period: 'month' } as const
    const { id: accountId } = await bench.gateway.accounts.create({ id: 'acct_capped', spendingCap })
    const { key } = await bench.gateway.keys.create({ accountId })
    await bench.gateway.accounts.credit(accountId, '0.60')
    await bench.submit('a boat', { apiKey: key })

    await toTheEnd()
    const told = bench.events.flatMap((event) => {
      if (event.type === 'cap-reached') return [`cap ${event.thresholdPercent}: ${event.chargedNanoDollars}`]
      return event.type === 'balance-low' ? [`balance ${event.thresholdPercent}: ${event.remainingNanoDollars}`] : []
    })

    expect(told).toEqual(['cap 50: 400000000', 'cap 80: 400000000', 'balance 50: 200000000'])
  },
)

test('reports the cost of a video whose hold was ended manually, and charges its caller nothing', async () => {
  bench = await taskBench()
  await bench.submit('a boat')
  const { holds } = await bench.gateway.holds.list()
  await bench.gateway.holds.void(holds[0]!.id)

  await toTheEnd()

  expect(await charged()).toBe(0n)
  expect(bench.events.filter(({ type }) => type === 'settlement-given-up')).toEqual([
    expect.objectContaining({ reason: 'hold-ended', amountNanoDollars: parseDollars('0.40') }),
  ])
  expect(bench.events.find(({ type }) => type === 'task-ended')).toMatchObject({
    costNanoDollars: 0n,
    dueNanoDollars: parseDollars('0.40'),
  })
})

test('the tier that was asked for is held for and charged', async () => {
  bench = await taskBench()
  await bench.submit('a boat', { fields: { resolution: '1080p', parameters: { resolution: '1080P' } } })
  const { held } = await bench.account()

  await toTheEnd()

  expect(held).toBe(parseDollars('0.60'))
  expect(await charged()).toBe(parseDollars('0.60'))
})

describe('the price of the submission holds', () => {
  let prices: ReloadablePrices

  function dearer(): void {
    const rows = testPrices.prices.map((row) => (row.meter === 'video_second' ? { ...row, amount: '9.99' } : row))
    prices.reload({ ...testPrices, prices: rows })
  }

  test('a price list that is replaced while the video renders changes nothing', async () => {
    prices = reloadablePrices(testPrices)
    bench = await taskBench({ prices })
    await bench.submit('a boat')
    dearer()

    await toTheEnd()

    expect(await charged()).toBe(parseDollars('0.40'))
  })

  test('a model that is taken off the list while the video renders is still charged', async () => {
    prices = reloadablePrices(testPrices)
    bench = await taskBench({ prices })
    await bench.submit('a boat')
    prices.reload({ ...testPrices, prices: testPrices.prices.filter(({ meter }) => meter !== 'video_second') })

    await toTheEnd()
    const next = await bench.post('a boat')

    expect(await charged()).toBe(parseDollars('0.40'))
    expect(next.status).toBe(400)
    expect(await next.json()).toMatchObject({ error: { code: 'model_not_priced' } })
  })

  test('the prices stay with the task when another process ends it', async () => {
    prices = reloadablePrices(testPrices)
    bench = await taskBench({ prices })
    await bench.submit('a boat')
    dearer()
    await bench.close()
    bench = await bench.another()

    await toTheEnd()

    expect(await charged()).toBe(parseDollars('0.40'))
  })
})

describe('spending caps', () => {
  test('a video that renders counts by its hold, a finished one by its charge, and a failed one not at all', async () => {
    bench = await taskBench()
    const spendingCap = { amount: parseDollars('0.90'), period: 'month' } as const
    const { key } = await bench.gateway.keys.create({ accountId: TEST_ACCOUNT, spendingCap })
    const status = async (prompt: string): Promise<number> => (await bench.post(prompt, { apiKey: key })).status

    const first = [
      await status('[[video:fail]] a boat'),
      await status('[[video:seconds=2]] a boat'),
      await status('a boat'),
    ]
    await toTheEnd()
    // 20 cents are spent.
    const second = [await status('a boat'), await status('a boat')]
    const third = [await status('a boat')]
    await toTheEnd()

    expect(first).toEqual([202, 202, 402])
    expect(second).toEqual([202, 402])
    expect(third).toEqual([402])
    expect(await charged()).toBe(parseDollars('0.60'))
  })
})

describe('without billing', () => {
  test('a task runs to its end, its key is kept, and nothing is written of money', async () => {
    bench = await taskBench({ billing: 'off' })
    const headers = { 'idempotency-key': 'free' }
    const id = await bench.submit('a boat', { headers })

    await toTheEnd()

    expect(await bench.read(id)).toMatchObject({ status: 'completed' })
    expect(await bench.read(id)).not.toHaveProperty('cost')
    expect(await bench.submit('a boat', { headers })).toBe(id)
    expect(await charged()).toBe(0n)
  })
})
