import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { generation, IMAGES } from '../images/image-requests.ts'

const PICTURES = 3
/** Vendor's report for each image. */
const REPORT = { input_tokens: 20, output_tokens: 272, total_tokens: 292 }
/** Nano-dollars a token, from the prices of the tests. */
const TEXT_IN = 5_000n
const PICTURE_OUT = 30_000n

let started: StartedGateway
let vendor: Server

afterEach(async () => {
  await started.close()
  vendor.closeAllConnections()
  await new Promise<void>((resolve) => vendor.close(() => resolve()))
})

/** Vendor that sends `sent` images, and then only reports that it works on the next one. */
async function slowVendor(sent: number): Promise<string> {
  const events = Array.from({ length: sent }, () => ({
    type: 'image_generation.completed',
    b64_json: 'aGk=',
    usage: REPORT,
  }))
  const next = { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: 'aGk=' }
  vendor = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of [...events, next]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    })
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
}

test.each([0, 1, 2])(
  'charges a stream of three images whose caller disconnects after %i of them for all three, because the vendor completes them',
  async (sent) => {
    const origin = await slowVendor(sent)
    started = await startGateway({ vendors: [openai({ apiKey: 'vendor-key', baseURL: origin })] })
    const leaving = new AbortController()
    const body = generation('a kettle', { quality: 'low', size: '1024x1024', n: PICTURES, stream: true })
    const answer = await started.post(IMAGES, body, {}, leaving.signal)
    const reader = answer.body!.getReader()
    let text = ''
    while (!text.includes('partial_image')) text += new TextDecoder().decode((await reader.read()).value)
    leaving.abort()
    const ended = await started.ended(answer)

    expect(ended.ending).toBe('abandoned')
    expect(ended.usage).toMatchObject({ images: PICTURES, outputTokens: PICTURES * REPORT.output_tokens })
    const promptTokens = BigInt(ended.usage?.inputTokens ?? 0)
    expect(promptTokens).toBeGreaterThanOrEqual(BigInt(sent * REPORT.input_tokens))
    expect(ended.costNanoDollars).toBe(promptTokens * TEXT_IN + BigInt(PICTURES * REPORT.output_tokens) * PICTURE_OUT)
  },
)
