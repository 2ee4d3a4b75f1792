import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { type FakeClock, fakeClock } from '../../../src/testing/index.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { batchVendor } from '../../support/batch-vendor.ts'
import { TEST_ACCOUNT } from '../../support/start-gateway.ts'
import { answeringVendor, json } from '../streams/answering-vendor.ts'
import { batchCompletion, batchGateways, batchLine, submitBatch } from './batch-gateway.ts'

const start = batchGateways()

/** An error after which a request is made again, a minute later. */
function fail(response: ServerResponse): void {
  response.setHeader('retry-after', '60')
  json(response, { error: { message: 'busy' } }, 503)
}

/** Lets time pass until something has happened. */
async function until(clock: FakeClock, happened: Promise<unknown>): Promise<void> {
  let isOver = false
  const over = happened.then(() => {
    isOver = true
  })
  for (let turns = 0; turns < 10_000 && !isOver; turns++) {
    clock.advance(1_000)
    await new Promise(setImmediate)
  }
  await over
}

describe('more batches than a process runs', () => {
  /** Starts a gateway whose vendor answers on command, and which sends the requests of a batch one by one. */
  async function startHeld(failing: readonly string[] = []) {
    const clock = fakeClock()
    const held = new Map<string, () => void>()
    const heard: string[] = []
    let arrived = (): void => {}
    const vendor = await answeringVendor((response, { messages }) => {
      const said = (messages as { content: string }[])[0]!.content
      heard.push(said)
      if (failing.includes(said)) return fail(response)
      held.set(said, () => json(response, batchCompletion()))
      arrived()
    })
    const started = await start({
      clock,
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      batches: { requestsAtOnce: 1 },
      timeouts: { firstByteMs: 3_600_000, totalMs: 3_600_000 },
      holdTtlMs: 7_200_000,
    })
    return {
      clock,
      heard,
      ...started,
      /** Lets the vendor answer what was said, or all that it was asked. */
      release(...said: string[]) {
        for (const each of said.length > 0 ? said : [...held.keys()]) {
          held.get(each)?.()
          held.delete(each)
        }
      },
      /** Submits a batch that begins at once, and waits for its first call. */
      async begin(lines: readonly object[]): Promise<string> {
        const call = new Promise<void>((resolve) => {
          arrived = resolve
        })
        const { id } = await submitBatch(started.client, lines)
        await call
        return id
      },
      async untilHeard(count: number, stepMs: number) {
        for (let turns = 0; turns < 10_000 && heard.length < count; turns++) {
          clock.advance(stepMs)
          await new Promise(setImmediate)
        }
      },
      close: () => vendor.close(),
    }
  }

  test('one that has run for long makes room for one that waits', async () => {
    const { clock, heard, client, taskEnded, begin, release, untilHeard, close } = await startHeld()
    const ids: string[] = []
    for (const first of [10, 20, 30, 40]) {
      ids.push(await begin([batchLine(first), batchLine(first + 1)]))
      clock.advance(1_000)
    }
    const last = await submitBatch(client, [batchLine(50)])
    clock.advance(60_000)
    expect(heard).toEqual(['Say 10', 'Say 20', 'Say 30', 'Say 40'])

    await untilHeard(5, 1_000)
    expect(heard.at(-1)).toBe('Say 50')

    // The batch that was put back goes on with what it has not sent yet, and sends nothing twice.
    const ended = taskEnded(last.id)
    release()
    await ended
    for (let turns = 0; turns < 10_000 && heard.length < 9; turns++) {
      release()
      clock.advance(100)
      await new Promise(setImmediate)
    }
    release()
    await Promise.all(ids.map((id) => taskEnded(id)))
    await close()

    expect(heard.toSorted()).toEqual([10, 11, 20, 21, 30, 31, 40, 41, 50].map((number) => `Say ${number}`))
  })

  test('one of a frozen account begins no further request until the account is none any more', async () => {
    const { heard, gateway, taskEnded, begin, release, untilHeard, close } = await startHeld()
    const id = await begin([batchLine(10), batchLine(11)])
    await gateway.accounts.freeze(TEST_ACCOUNT, { reason: 'chargeback' })
    await untilHeard(2, 10)
    expect(heard).toEqual(['Say 10'])

    release()
    await untilHeard(2, 10)
    expect(heard).toEqual(['Say 10'])

    await gateway.accounts.unfreeze(TEST_ACCOUNT)
    await untilHeard(2, 1_000)
    const ended = taskEnded(id)
    release()
    await ended
    await close()

    expect(heard).toEqual(['Say 10', 'Say 11'])
  })

  test('one that made room at its last request ends with it, and waits for no other', async () => {
    const { clock, heard, client, taskEnded, begin, release, untilHeard, close } = await startHeld()
    const first = await begin([batchLine(10)])
    clock.advance(200_000)
    for (const number of [20, 30, 40]) await begin([batchLine(number)])
    await submitBatch(client, [batchLine(50)])
    await untilHeard(5, 1_000)
    expect(heard.at(-1)).toBe('Say 50')

    const ended = taskEnded(first)
    release('Say 10')
    await ended

    expect(await client.batches.retrieve(first)).toMatchObject({
      status: 'completed',
      request_counts: { completed: 1 },
    })
    release()
    await close()
  })

  test('a request that fails is made as often as any, though its batch made room in between', async () => {
    const { clock, heard, client, taskEnded, begin, release, close } = await startHeld(['Say 11'])
    const first = await begin([batchLine(10), batchLine(11)])
    for (const number of [20, 30, 40]) await begin([batchLine(number)])
    clock.advance(200_000)
    await submitBatch(client, [batchLine(50)])
    release('Say 10')
    await until(clock, taskEnded(first))
    release()

    const tries = heard.flatMap((said, place) => (said === 'Say 11' ? [place] : []))
    const other = heard.indexOf('Say 50')
    expect(tries).toHaveLength(5)
    expect(tries[0]! < other && other < tries[4]!).toBe(true)
    await close()
  })

  test('one that is being taken to its vendor goes on there, and is created once', async () => {
    const vendor = await batchVendor()
    vendor.isInstant = true
    const uploads: ServerResponse[] = []
    vendor.intercept = (call, response) => {
      const isHeld = call === 'POST /v1/files' && uploads.length < 4
      if (isHeld) uploads.push(response)
      return isHeld
    }
    const clock = fakeClock()
    const { client, taskEnded } = await start({
      clock,
      vendors: [openai({ apiKey: 'k', baseURL: vendor.origin })],
      batches: { native: true },
    })
    const ids: string[] = []
    for (const number of [10, 20, 30, 40]) {
      ids.push((await submitBatch(client, [batchLine(number)])).id)
      await expect.poll(() => uploads.length).toBe(ids.length)
    }
    const last = await submitBatch(client, [batchLine(50)])

    await until(clock, taskEnded(last.id))
    const createdMeanwhile = vendor.batches.size
    for (const [index, upload] of uploads.entries()) {
      vendor.files.set(`file-held-${index}`, JSON.stringify({ custom_id: 'r0', body: { messages: [{ content: '' }] } }))
      json(upload, { id: `file-held-${index}`, object: 'file' })
    }
    await until(clock, Promise.all(ids.map((id) => taskEnded(id))))

    expect(createdMeanwhile).toBe(1)
    expect(
      [...vendor.batches.values()]
        .map(({ input_file_id: file }) => file)
        .sort()
        .slice(1),
    ).toEqual(uploads.map((_, index) => `file-held-${index}`))
    for (const id of ids)
      expect(await client.batches.retrieve(id)).toMatchObject({ status: 'completed', request_counts: { completed: 1 } })
    await vendor.close()
  })
})
