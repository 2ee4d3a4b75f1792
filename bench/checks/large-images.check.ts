import { Buffer } from 'node:buffer'
import { afterEach, expect, test } from 'vitest'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { IMAGES, interaction, png } from '../../test/gateway/images/image-requests.ts'
import { type ScriptedVendor, scriptedVendor } from '../../test/gateway/images/image-vendor.ts'
import { ANSWERS, base64, paddedPng } from '../../test/gateway/images/large-images.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../test/support/start-gateway.ts'
import { usedBytes } from './used-bytes.ts'

const MEGABYTE = 1024 * 1024
const LARGE = 20 * MEGABYTE
const SMALL = 2 * MEGABYTE

let vendor: ScriptedVendor | undefined
let started: StartedGateway

async function stop(): Promise<void> {
  await started.close()
  await vendor?.close()
  vendor = undefined
}
afterEach(stop)

/** Starts a gateway with a vendor that returns this answer. */
async function start(contentType: string, pieces: readonly string[]): Promise<void> {
  vendor = await scriptedVendor(contentType, pieces)
  const connection = { apiKey: 'vendor-key', baseURL: vendor.origin }
  started = await startGateway({ vendors: [openai(connection), gemini(connection)] })
}

test.each(Object.keys(ANSWERS))('parses an image in %s in time that is proportional to its size', async (name) => {
  const times: number[] = []
  for (const size of [SMALL, LARGE]) {
    const { type, pieces, path, body } = ANSWERS[name]!(base64(size))
    await start(type, pieces)
    await (await started.post(path, body)).arrayBuffer()
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      await (await started.post(path, body)).arrayBuffer()
      const { user, system } = process.cpuUsage(before)
      best = Math.min(best, user + system)
    }
    times.push(best)
    if (size === SMALL) await stop()
  }

  // Ten times the size: linear work takes about 10 times as much, up to 35 where the small one stays in the processor's
  // caches; quadratic work takes 100.
  expect(times[1]! / times[0]!).toBeLessThan(60)
})

test('frees the memory of 20 MB images in requests', async () => {
  const { type, pieces } = ANSWERS['an interaction']!('aGVsbG8=')
  await start(type, pieces)
  const request = interaction([
    { type: 'text', text: 'a kettle' },
    { type: 'image', mime_type: 'image/png', data: paddedPng(LARGE) },
  ])
  const send = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round++) await (await started.post(IMAGES, request)).arrayBuffer()
  }
  await send(2)
  const before = await usedBytes()
  await send(6)
  const after = await usedBytes()

  expect(after - before).toBeLessThan(LARGE)
})

test('hostile forms leave no memory behind', async () => {
  started = await startGateway()
  const boundary = 'a-boundary'
  const picture = Buffer.from(png(16)).toString('latin1')
  const part = (head: string, body: string): string =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${body}\r\n`
  const file = (name: string, headers: string): string =>
    part(`name="${name}"; filename="a.png"\r\ncontent-type: image/png${headers}`, picture)
  const form = (added: string): Buffer<ArrayBuffer> =>
    Buffer.from(
      `${part('name="model"', 'gp-image-2')}${part('name="prompt"', 'more light')}${file('image', '')}${added}--${boundary}--\r\n`,
      'latin1',
    )
  const many = Array.from({ length: 50_000 }, (_, index) => part(`name="f${index}"`, 'x')).join('')
  const folded = file('image[]', `\r\nx-long: ${'\r\n y'.repeat(60_000)}`)
  const bodies = [form(many), form(folded), form('').subarray(0, 300)]
  const attack = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      for (const body of bodies) {
        const answer = await fetch(`${started.url}/v1/images/edits`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${TEST_KEY}`,
            'content-type': `multipart/form-data; boundary=${boundary}`,
          },
          body,
        })
        await answer.arrayBuffer()
        expect(answer.status).toBe(400)
      }
    }
  }
  await attack(5)
  const before = await usedBytes()
  await attack(20)
  const after = await usedBytes()

  // A round that stays in memory has more than three megabytes.
  expect(bodies[0]!.byteLength).toBeGreaterThan(3 * MEGABYTE)
  expect(after - before).toBeLessThan(10 * MEGABYTE)
})
