import { afterEach, expect, test } from 'vitest'
import { MOUNTS, type Mounted } from '../../test/adapters/support/mounts.ts'
import { rawPost } from '../../test/support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway } from '../../test/support/start-gateway.ts'

let started: StartedGateway
let mounted: Mounted

afterEach(async () => {
  await mounted.close()
  await started.close()
})

const WORDS = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')

test.each(Object.entries(MOUNTS))(
  'in %s the vendor sees its socket close within 50 ms of the caller leaving, at the 99th percentile',
  async (_name, mount) => {
    started = await startGateway()
    mounted = await mount(started.gateway)
    const body = chatBody('chat-relayed', `[[fault:pace=2]] ${WORDS}`, { stream: true })
    const delays: number[] = []
    for (let round = 0; round < 100; round++) {
      const caller = rawPost(mounted.origin, '/ai/v1/chat/completions', body)
      await caller.received('word1')
      const leftAtMs = caller.leave()
      delays.push((await started.sandbox.nextAbort()) - leftAtMs)
    }
    delays.sort((left, right) => left - right)

    expect(delays[98]).toBeLessThanOrEqual(50)
  },
)
