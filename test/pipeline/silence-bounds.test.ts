import { afterEach, expect, test } from 'vitest'
import type { Transport } from '../../src/transport/transport.ts'
import { undiciTransport } from '../../src/transport/undici.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import { presets } from '../../src/vendors/presets/presets.ts'
import { type AnsweringVendor, answeringVendor, json } from '../gateway/streams/answering-vendor.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

let started: StartedGateway
let vendor: AnsweringVendor

afterEach(async () => {
  await started.close()
  await vendor.close()
})

/** Vendors, models and effort, and whether the answer may be silent for the whole time of the request. */
const CALLS = [
  ['openai', 'o3', undefined, true],
  ['openai', 'gpt-5', undefined, true],
  ['openai', 'gpt-5.1', undefined, false],
  ['openai', 'gpt-5.1', 'high', true],
  ['openai', 'gpt-4o', undefined, false],
  ['gemini', 'gemini-2.5-pro', undefined, true],
  ['gemini', 'gemini-2.5-flash', 'none', false],
  ['ollama', 'llama3.2', undefined, true],
  ['groq', 'llama-3.3-70b-versatile', undefined, false],
] as const

test.each(CALLS.flatMap((call) => [true, false].map((stream) => [...call, stream] as const)))(
  'bounds the silence of %s %s with effort %s by the whole time: %s (stream: %s)',
  async (id, upstream, effort, isLong, stream) => {
    vendor = await answeringVendor((response) => json(response, { error: { message: 'no' } }, 400))
    const baseURL = vendor.origin
    const waits: number[] = []
    const sockets = undiciTransport()
    const transport: Transport = {
      send(request, handler) {
        waits.push(request.idleTimeoutMs)
        return sockets.send(request, handler)
      },
      close: () => sockets.close(),
    }
    started = await startGateway({
      transport,
      timeouts: { idleMs: 60_000, totalMs: 600_000 },
      billing: 'off',
      vendors: [
        openai({ apiKey: 'k', baseURL }),
        gemini({ apiKey: 'k', baseURL }),
        openaiCompatible(presets.ollama, { baseURL }),
        openaiCompatible(presets.groq, { baseURL, apiKey: 'k' }),
      ],
      models: [{ id: 'mine', kind: 'chat', vendor: id, upstream }],
    })
    const body = { model: 'mine', messages: [{ role: 'user', content: 'hi' }], stream, reasoning_effort: effort }
    await (await started.post('/v1/chat/completions', body)).text()

    expect(waits).toEqual([isLong ? 600_000 : 60_000])
  },
)
