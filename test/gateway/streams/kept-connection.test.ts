import { Agent, request } from 'node:http'
import { afterEach, expect, it } from 'vitest'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'

let started: StartedGateway | undefined
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const warnings: string[] = []
const note = (warning: Error): void => void warnings.push(String(warning))

afterEach(async () => {
  process.off('warning', note)
  agent.destroy()
  await started?.close()
})

const FAULTS = [
  ...['status=503', 'quota', 'bad-key', 'html=502', 'redirect', 'reset', 'reset-mid-stream=3', 'end-early=2'],
  ...['no-done', 'error-event=2', 'garbage', 'empty', 'half-json', 'refuse', 'status=429'],
]

it('answers 15 faults of a vendor, whole and streamed, over one connection without a warning about listeners', async () => {
  started = await startGateway()
  process.on('warning', note)
  const { url } = started
  const ask = (fault: string, stream: boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${TEST_KEY}` }
      const sent = request(`${url}/v1/chat/completions`, { agent, method: 'POST', headers }, (response) => {
        response.resume()
        response.on('close', () => resolve(`${sent.reusedSocket ? 'kept' : 'new'}`))
      })
      sent.on('error', reject)
      sent.end(
        JSON.stringify({
          model: 'gpt-4.1-mini',
          stream,
          messages: [{ role: 'user', content: `[[fault:${fault}]] hi` }],
        }),
      )
    })

  const connections: string[] = []
  for (const fault of FAULTS) for (const stream of [false, true]) connections.push(await ask(fault, stream))

  expect(warnings).toEqual([])
  expect(connections.filter((connection) => connection === 'new')).toHaveLength(1)
})
