import { afterEach, describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../src/catalog/model.ts'
import { DASHSCOPE_VIDEO_MODELS } from '../../src/catalog/models/dashscope-models.ts'
import { parseDollars } from '../../src/core/money.ts'
import { testPrices } from '../support/test-prices.ts'
import { CREDIT, type TaskBench, taskBench } from './support/task-bench.ts'

const CDN = 'https://cdn.example.net'

let bench: TaskBench

afterEach(() => bench.close())

/** The built-in row with fallbacks, as a host lists it. */
function withFallbacks(id: string, fallbacks: readonly string[]): ModelDefinition {
  return { ...DASHSCOPE_VIDEO_MODELS.find((model) => model.id === id)!, fallbacks }
}

/** The price of a second of 720p, by model. */
const SECOND: Readonly<Record<string, string>> = { 'wv2.6-t2v': '0.10', 'wv2.7-t2v': '0.30' }

const prices = {
  ...testPrices,
  prices: testPrices.prices
    .filter(({ meter }) => meter !== 'video_second')
    .concat(
      ['wv2.6-t2v', 'wv2.7-t2v', 'wv2.6-i2v', 'wv2.7-i2v'].map((model) => ({
        model,
        meter: 'video_second' as const,
        amount: SECOND[model] ?? '0.10',
      })),
    ),
}

function sentBodies(): unknown[] {
  return bench.sandbox.requests.filter(({ method }) => method === 'POST').map(({ body }) => body)
}

/** The vendor has retired the first model, which says nothing about the second. */
function refuseTheFirst(times = 1): void {
  bench.sandbox.fault({ kind: 'status', status: 404, vendor: 'dashscope', operation: 'videos', times })
}

const BODY_26 = { model: 'wv2.6-t2v', input: { prompt: 'a boat' }, parameters: { size: '1280*720', duration: 4 } }
const BODY_27 = {
  model: 'wv2.7-t2v',
  input: { prompt: 'a boat' },
  parameters: { resolution: '720P', ratio: '9:16', duration: 4 },
}

describe('a fallback of the other protocol', () => {
  test('gets the body of 2.6 as 2.7 reads it, and its own price is charged', async () => {
    bench = await taskBench({ prices, models: [withFallbacks('wv2.6-t2v', ['wv2.7-t2v'])] })
    refuseTheFirst()
    const id = await bench.submit('', { fields: BODY_26 })
    const held = await bench.account()
    await bench.pass(60_000, 5_000)

    expect(sentBodies()).toEqual([
      expect.objectContaining({ model: 'wan2.6-t2v', parameters: BODY_26.parameters }),
      {
        model: 'wan2.7-t2v',
        input: { prompt: 'a boat' },
        parameters: { resolution: '720P', ratio: '16:9', duration: 4 },
      },
    ])
    // Held for the more expensive of the two.
    expect(held).toEqual({ balance: CREDIT - parseDollars('1.20'), held: parseDollars('1.20') })
    expect(await bench.read(id)).toMatchObject({ status: 'completed', model: 'wv2.7-t2v', cost: '1.2' })
    expect(await bench.account()).toEqual({ balance: CREDIT - parseDollars('1.20'), held: 0n })
  })

  test('gets the body of 2.7 as 2.6 reads it, and what was held beyond its price comes back', async () => {
    bench = await taskBench({ prices, models: [withFallbacks('wv2.7-t2v', ['wv2.6-t2v'])] })
    refuseTheFirst()
    const id = await bench.submit('', { fields: BODY_27 })
    await bench.pass(60_000, 5_000)

    expect(sentBodies()[1]).toEqual({
      model: 'wan2.6-t2v',
      input: { prompt: 'a boat' },
      parameters: { size: '720*1280', duration: 4 },
    })
    expect(await bench.read(id)).toMatchObject({ status: 'completed', model: 'wv2.6-t2v', cost: '0.4' })
    expect(await bench.account()).toEqual({ balance: CREDIT - parseDollars('0.40'), held: 0n })
  })

  test('gets the image in the member that it reads', async () => {
    bench = await taskBench({ prices, models: [withFallbacks('wv2.6-i2v', ['wv2.7-i2v'])] })
    refuseTheFirst()
    await bench.submit('', {
      fields: {
        model: 'wv2.6-i2v',
        input: { prompt: 'she smiles', img_url: `${CDN}/p.png` },
        parameters: { resolution: '720P', duration: 4 },
      },
    })

    expect(sentBodies()[1]).toMatchObject({
      model: 'wan2.7-i2v',
      input: { prompt: 'she smiles', media: [{ type: 'first_frame', url: `${CDN}/p.png` }] },
      parameters: { resolution: '720P', duration: 4 },
    })
  })
})

describe('a fallback that cannot do what was asked', () => {
  test('is skipped without a trace on the bill, and the next one is tried', async () => {
    const other: ModelDefinition = { ...withFallbacks('wv2.6-t2v', []), id: 'wv2.6-t2v-other', aliases: [] }
    const models = [withFallbacks('wv2.6-t2v', ['wv2.7-t2v', 'wv2.6-t2v-other']), other]
    const rows = [...prices.prices, { model: other.id, meter: 'video_second' as const, amount: '0.20' }]
    bench = await taskBench({ prices: { ...prices, prices: rows }, models })
    refuseTheFirst()
    // 2.7 has no word for several shots.
    const parameters = { ...BODY_26.parameters, shot_type: 'multi' }
    const id = await bench.submit('', { fields: { ...BODY_26, parameters } })
    await bench.pass(60_000, 5_000)

    expect(sentBodies()).toHaveLength(2)
    expect(sentBodies()[1]).toMatchObject({ model: 'wan2.6-t2v', parameters })
    expect(await bench.read(id)).toMatchObject({ model: 'wv2.6-t2v-other', cost: '0.8' })
  })

  test('leaves the caller with the answer of the model that was asked for, and its money free', async () => {
    bench = await taskBench({ prices, models: [withFallbacks('wv2.6-t2v', ['wv2.7-t2v'])] })
    refuseTheFirst(5)
    const parameters = { ...BODY_26.parameters, shot_type: 'multi' }
    const answer = await bench.post('', { fields: { ...BODY_26, parameters } })

    expect(answer.status).toBe(503)
    expect(sentBodies()).toHaveLength(1)
    expect(await bench.account()).toEqual({ balance: CREDIT, held: 0n })
    expect(await (await bench.list()).json()).toMatchObject({ data: [] })
  })
})

test('tries no fallback once a submission may have reached the vendor', async () => {
  bench = await taskBench({ prices, models: [withFallbacks('wv2.6-t2v', ['wv2.7-t2v'])] })
  bench.sandbox.fault({ kind: 'reset', vendor: 'dashscope', operation: 'videos' })
  const id = await bench.submit('', { fields: BODY_26 })

  expect(await bench.read(id)).toMatchObject({ status: 'unknown', model: 'wv2.6-t2v' })
  expect(sentBodies()).toHaveLength(1)
})
